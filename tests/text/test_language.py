"""Which language a text is in, said only when it is clear."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.text.language import LANGUAGES, detect_language

SENTENCES = {
    "af": "Ons het gister die tuin natgemaak en daarna saam koffie gedrink voor die reën.",
    "ar": "زرعنا الطماطم في الحديقة أمس ثم شربنا القهوة معا قبل أن يبدأ المطر.",
    "be": "Учора мы палілі агарод, а потым разам пілі каву, пакуль не пачаўся дождж.",
    "bg": "Вчера поливахме градината, а после пихме кафе заедно, преди да завали дъжд.",
    "bn": "গতকাল আমরা বাগানে জল দিয়েছিলাম এবং বৃষ্টি শুরু হওয়ার আগে কফি খেয়েছিলাম।",
    "ca": "Ahir vam regar el jardí i després vam prendre un cafè junts abans de la pluja.",
    "cs": "Včera jsme zalévali zahradu a potom jsme společně pili kávu, než začalo pršet.",
    "da": "I går vandede vi haven, og bagefter drak vi kaffe sammen, inden det begyndte at regne.",
    "de": "Gestern haben wir den Garten gegossen und danach zusammen Kaffee getrunken.",
    "el": "Χθες ποτίσαμε τον κήπο και μετά ήπιαμε καφέ μαζί πριν αρχίσει η βροχή.",
    "en": "Yesterday we watered the garden and then had coffee together before the rain began.",
    "eo": "Hieraŭ ni akvumis la ĝardenon kaj poste kune trinkis kafon antaŭ ol ekpluvis.",
    "es": "Ayer regamos el jardín y después tomamos café juntos antes de que empezara a llover.",
    "et": "Eile kastsime aeda ja pärast jõime koos kohvi, enne kui vihma sadama hakkas.",
    "eu": "Atzo lorategia ureztatu genuen eta gero kafea hartu genuen elkarrekin.",
    "fa": "دیروز باغ را آب دادیم و بعد پیش از آنکه باران شروع شود با هم قهوه نوشیدیم.",
    "fi": "Eilen kastelimme puutarhan ja joimme sitten yhdessä kahvia ennen kuin alkoi sataa.",
    "fr": "Hier nous avons arrosé le jardin, puis nous avons pris un café avant la pluie.",
    "ga": "D'uisciúigh muid an gairdín inné agus d'ól muid caife le chéile roimh an mbáisteach.",
    "he": "אתמול השקינו את הגינה ואחר כך שתינו קפה יחד לפני שהתחיל הגשם.",
    "hi": "कल हमने बगीचे में पानी दिया और फिर बारिश शुरू होने से पहले साथ में कॉफी पी।",
    "hr": "Jučer smo zalijevali vrt, a zatim smo zajedno pili kavu prije nego što je počela kiša.",
    "hu": "Tegnap meglocsoltuk a kertet, aztán együtt kávéztunk, mielőtt eleredt az eső.",
    "hy": "Երեկ մենք ջրեցինք այգին, հետո միասին սուրճ խմեցինք։",
    "id": "Kemarin kami menyiram kebun lalu minum kopi bersama sebelum hujan mulai turun.",
    "it": "Ieri abbiamo annaffiato il giardino e poi abbiamo preso un caffè prima della pioggia.",
    "ja": "昨日は庭に水をやって、雨が降る前に一緒にコーヒーを飲みました。",
    "ka": "გუშინ ბაღი მოვრწყეთ და მერე ერთად ყავა დავლიეთ.",
    "ko": "어제 우리는 정원에 물을 주고 비가 오기 전에 함께 커피를 마셨다.",
    "lt": "Vakar laistėme sodą, o paskui kartu gėrėme kavą, kol neprasidėjo lietus.",
    "lv": "Vakar mēs laistījām dārzu un pēc tam kopā dzērām kafiju, pirms sākās lietus.",
    "mk": "Вчера ја полевавме градината, а потоа заедно пиевме кафе пред да почне дождот.",
    "ne": "हिजो हामीले बगैंचामा पानी हाल्यौं र पानी पर्नु अघि सँगै कफी पियौं।",
    "nl": "Gisteren hebben we de tuin water gegeven en daarna samen koffie gedronken.",
    "no": "I går vannet vi hagen, og etterpå drakk vi kaffe sammen før det begynte å regne.",
    "pl": "Wczoraj podlewaliśmy ogród, a potem piliśmy razem kawę, zanim zaczął padać deszcz.",
    "pt": "Ontem regámos o jardim e depois tomámos café juntos antes de começar a chover.",
    "ro": "Ieri am udat grădina și apoi am băut cafea împreună înainte să înceapă ploaia.",
    "ru": "Вчера мы поливали сад, а потом вместе пили кофе, пока не начался дождь.",
    "sk": "Včera sme polievali záhradu a potom sme spolu pili kávu, kým nezačalo pršať.",
    "sl": "Včeraj smo zalivali vrt, nato pa skupaj pili kavo, preden je začelo deževati.",
    "sq": "Dje e ujitëm kopshtin dhe pastaj pimë kafe së bashku para se të fillonte shiu.",
    "sr": "Јуче смо заливали башту, а онда смо заједно пили кафу пре него што је почела киша.",
    "st": "Maobane re ile ra nosetsa serapa mme ra nwa kofi mmoho pele pula e qala ho na.",
    "sv": "I går vattnade vi trädgården och sedan drack vi kaffe tillsammans innan det regnade.",
    "ta": "நேற்று தோட்டத்திற்கு தண்ணீர் ஊற்றி பிறகு ஒன்றாக காபி குடித்தோம்.",
    "th": "เมื่อวานเรารดน้ำในสวนแล้วดื่มกาแฟด้วยกันก่อนฝนตก",
    "tr": "Dün bahçeyi suladık ve sonra yağmur başlamadan önce birlikte kahve içtik.",
    "uk": "Вчора ми поливали сад, а потім разом пили каву, поки не почався дощ.",
    "ur": "کل ہم نے باغ کو پانی دیا اور پھر بارش شروع ہونے سے پہلے مل کر کافی پی۔",
    "vi": "Hôm qua chúng tôi tưới vườn rồi cùng nhau uống cà phê trước khi trời mưa.",
    "yi": "נעכטן האָבן מיר באַוואַסערט דעם גאָרטן און דערנאָך צוזאַמען געטרונקען קאַווע.",
    "zh": "昨天我们给花园浇了水，然后在下雨之前一起喝了咖啡。",
}


def test_every_language_has_a_sentence() -> None:
    assert set(SENTENCES) == set(LANGUAGES)


def test_pointed_hebrew_is_no_yiddish() -> None:
    assert detect_language("בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ") == "he"


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_enough(language: str) -> None:
    assert detect_language(SENTENCES[language], fallback="none") == language


@pytest.mark.parametrize(
    "text", ["", "Buy milk", "ok", "12:30 – 14:00", "🙂🙂", "pip install x", "\x00\n", "TODO"]
)
def test_too_little_text_is_left_to_the_fallback(text: str) -> None:
    assert detect_language(text) == "en"
    assert detect_language(text, fallback="de") == "de"


@pytest.mark.parametrize(
    ("text", "language"),
    [("猫", "zh"), ("ねこ", "ja"), ("고양이", "ko"), ("γάτα", "el"), ("แมว", "th"), ("кот", "ru")],
)
def test_a_script_can_be_enough(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_candidates_limit_the_answer() -> None:
    assert detect_language(SENTENCES["nl"], ["de", "en"], fallback="en") in ("de", "en")
    assert detect_language(SENTENCES["ja"], ["de", "en"], fallback="de") == "de"
    assert detect_language("東京", ["ja", "en"]) == "ja"
    assert detect_language("Gartenarbeit", ["de"]) == "de"
    assert detect_language("Gartenarbeit", [], fallback="fr") == "fr"


def test_code_links_and_addresses_do_not_count() -> None:
    code = "import the_module_for_this_and_that\n" * 40
    note = f"```python\n{code}```\n{SENTENCES['de']}"
    assert detect_language(note) == "de"
    assert detect_language(f"https://example.com/{'the-and-of-' * 20} {SENTENCES['fr']}") == "fr"


def test_a_query_against_known_languages_needs_no_model() -> None:
    program = (
        "import sys; from memory_store.text.language import detect_language as d;"
        "print(d('Wie funktioniert die Verschlüsselung?', ['en', 'de']),"
        " d('how does the encryption work', ['en', 'de']), 'py3langid' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["de", "en", "False"]


def test_a_note_full_of_function_words_needs_no_model() -> None:
    notes = [
        "Yesterday we watered all of the garden and then had coffee together before it rained.",
        "Gestern haben wir den Garten gegossen und dann mit ihr Kaffee getrunken, bevor es kam.",
    ]
    program = (
        "import sys; from memory_store.text.language import detect_language as d;"
        f"print(*[d(note, fallback='none') for note in {notes!r}], 'py3langid' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["en", "de", "False"]


NEAR_OTHERS = {
    "af": "Gister het ons die tuin natgemaak en toe saam koffie gedrink in die huis, want dit was "
    "so koud en nat. My broer was ook hier en hy het van die see vertel.",
    "eo": "Hieraŭ ni akvumis la ĝardenon kaj poste trinkis kafon en la domo de mia amiko, por ke "
    "li ne estu sola. Al mi plaĉis la kuko, sed la kafo estis tro forta por ni.",
    "eu": "Atzo lorategia ureztatu genuen eta gero kafea hartu genuen elkarrekin euria hasi "
    "baino lehen. Nire anaia ere hemen izan zen eta itsasoaz hitz egin zigun.",
    "ca": "Ahir vam regar el jardí i després vam prendre un cafè a la casa de la meva amiga, que "
    "no volia estar sola. El pastís em va agradar, però el cafè era massa fort per a mi.",
    "nl": "Gisteren hebben we de tuin water gegeven en daarna in het huis koffie gedronken, want "
    "het was zo koud en nat. Mijn broer was er ook en hij heeft over de zee verteld.",
}


@pytest.mark.parametrize("language", NEAR_OTHERS)
def test_words_that_neighbours_share_do_not_decide(language: str) -> None:
    assert detect_language(NEAR_OTHERS[language], fallback="none") == language


def test_a_note_in_one_language_that_quotes_another_is_its_own() -> None:
    quoted = "He wrote to me that it was all the same to him, and that we should go on as before."
    note = f"{SENTENCES['ja'] * 6} „{quoted}“"
    assert detect_language(note, fallback="none") == "ja"


def test_threads_may_ask_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(detect_language, list(SENTENCES.values()) * 3))
    assert found == [detect_language(text) for text in SENTENCES.values()] * 3


@given(st.text(), st.lists(st.sampled_from(LANGUAGES), max_size=4))
def test_any_text_gets_a_candidate_or_the_fallback(text: str, candidates: list[str]) -> None:
    assert detect_language(text, candidates, fallback="??") in {*candidates, "??"}
