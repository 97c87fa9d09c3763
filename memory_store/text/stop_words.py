"""Function words by language: the words a query may lose without losing its meaning.

The lists are our own and short on purpose: only closed classes (articles, pronouns, prepositions,
conjunctions, auxiliaries, question words), written as they are spelled, accents included. The
packaged collections were looked at and left: `stopwordsiso` 0.7 and `stop-words` 2025.11 list
1,300 English words, "computer", "system" and "problem" among them. Documents keep every word, so a
list can change without a new index.

Measured, plain BM25, nDCG@10 with no list, ours, the larger of theirs: SciFact .689, .688, .691;
Cranfield .357, .362, .359; XQuAD-de .938, .941, .942.
"""

from __future__ import annotations

STOP_WORDS: dict[str, str] = {
    "en": """
        a about above after again against all also am an and any are aren't as at be because
        been before being below between both but by can can't cannot could couldn't did
        didn't do does doesn't doing don't down during each few for from further had hadn't
        has hasn't have haven't having he her here hers herself him himself his how i if in
        into is isn't it it's its itself let's me more most my myself no nor not of off on
        once only or other our ours ourselves out over own same shall she should shouldn't
        so some such than that that's the their theirs them themselves then there there's
        these they this those through to too under until up upon us very was wasn't we were
        weren't what what's when where which while who whom whose why will with won't would
        wouldn't you your yours yourself yourselves i'm i've i'd i'll you're you've you'd
        you'll he's she's we're we've we'll they're they've may might must get gets got
        getting gotten""",
    "de": """
        ab aber als also am an auch auf aus bei beim bin bis bist da dabei dadurch dafür
        daher dann daran darauf darin darüber das dass davon dazu dein deine deinem deinen
        deiner dem den denn denen der deren des dessen die dies diese diesem diesen dieser
        dieses doch dort du durch ein eine einem einen einer eines er es etwa etwas euch
        euer eure eurem euren eurer für gegen hab habe haben hat hatte hatten hattest hätte
        hätten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins
        ist ja je jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann
        kannst kein keine keinem keinen keiner können könnte könnten man mein meine meinem
        meinen meiner mich mir mit muss müssen musste nach nicht nichts noch nun nur ob oder
        ohne sehr sein seine seinem seinen seiner seit sich sie sind so solche solchem
        solchen solcher soll sollen sollte sollten sondern sowie über um und uns unser
        unsere unserem unseren unserer unter vom von vor war waren warst was weil welche
        welchem welchen welcher welches wem wen wenn wer werde werden wessen wie wieder will
        wir wird wirst wo wobei wodurch wofür woher wohin womit woran worauf worin worüber
        wovon wozu wollen wollte wurde wurden würde würden zu zum zur zwischen warum wann""",
    "fr": """
        à afin ai aie ait alors après as au aucun aucune aura auraient aurait aussi autre
        autres aux avaient avais avait avant avec avez avoir avons c ça car ce ceci cela
        celle celles celui ces cet cette ceux chaque chez comme comment contre d dans de
        depuis derrière des dès donc dont du elle elles en encore entre es est et étaient
        étais était étant été être eu eux furent fut il ils j je jusqu jusque l la là
        laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais me
        même mêmes mes moi moins mon n ne ni nos notre nous on ont or ou où par parce pas
        pendant peu peut peuvent plus pour pourquoi puis puisque qu quand que quel quelle
        quelles quels qui quoi quoique s sa sans se sera seraient serait seront ses si soi
        soient soit sommes son sont sous suis sur t ta te tes toi ton tous tout toute toutes
        très tu un une vers voici voilà vos votre vous y""",
    "es": """
        a al algo algunas algunos ambos ante antes aquel aquella aquellas aquellos aquí así
        aún aunque bajo cada como cómo con contra cual cuál cuales cuáles cualquier cuando
        cuándo cuanto cuánto de del desde donde dónde durante e el él ella ellas ello ellos
        en entonces entre era eran eras eres es esa esas ese eso esos esta está estaba
        estaban estado estamos están estar estas este esto estos estoy fue fueron ha había
        habían haber han has hasta hay he hemos la las le les lo los más me mi mis mientras
        muy ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros
        para pero poco por porque pues que qué quien quién quienes quiénes se sea sean según
        ser será serán si sí sido siendo sin sino sobre sois somos son soy su sus suya suyas
        suyo suyos también tan tanto te tengo ti tiene tienen toda todas todo todos tu tú
        tus un una unas uno unos usted ustedes vosotros vuestra vuestro y ya yo""",
    "it": """
        a ad ai agli al alla alle allo anche ancora avere aveva avevano c che chi ci come
        con contro cosa così cui d da dagli dai dal dall dalla dalle dallo degli dei del
        dell della delle dello dentro di dopo dove dunque durante e è ed era erano essa esse
        essere essi esso fa fino fra fu fuori gli ha hanno hai ho i il in io l la le lei li
        lo loro lui ma me mentre mi mia mie miei mio molto ne né negli nei nel nell nella
        nelle nello no noi non nostra nostre nostri nostro o ogni oppure per perché però più
        poco poi prima qual quale quali quando quanta quante quanti quanto quasi quel quella
        quelle quelli quello quest questa queste questi questo qui quindi sarà saranno se
        sei sembra senza si sia siamo siano siete sono sopra sotto stata state stati stato
        sta stanno su sua sue sugli sui sul sull sulla sulle sullo suo suoi tra tu tua tue
        tuo tuoi tutta tutte tutti tutto un una uno v vi voi vostra vostre vostri vostro""",
    "pt": """
        a à ao aos aquela aquelas aquele aqueles aquilo as às até cada com como contra da
        das de dela delas dele deles depois desde do dos durante e é ela elas ele eles em
        embora enquanto entre era eram essa essas esse esses esta está estamos estão estar
        estas estava estavam este estes estou eu foi fomos for foram há isso isto já lhe
        lhes mais mas me mesmo meu meus minha minhas muito na nas não nem no nos nós nossa
        nossas nosso nossos num numa o onde os ou para pela pelas pelo pelos perante pois
        por porém porque porquê qual quais quando quanto que quê quem são se seja sejam sem
        sempre ser será serão seu seus si sido sob sobre sou sua suas também te tem têm
        tendo tenho ter teu tinha tinham toda todas todo todos tu tua um uma umas uns você
        vocês vos""",
    "nl": """
        aan al alle alles als altijd ben bent bij binnen daar daarom dan dat de der deze die
        dit doch doen door dus een eens en er ge geen geweest haar had hadden heb hebben
        hebt heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jou jouw jullie
        kan kon kunnen maar me meer men met mij mijn moet moeten na naar niet niets nog nu
        of om omdat onder ons onze ook op over reeds te tegen toch toen tot tussen u uit uw
        van vanaf veel voor waar waarom wanneer want waren was wat we wel welk welke werd
        werden wie wij wil worden wordt zal ze zelf zich zij zijn zo zonder zou zouden
        zullen""",
    "da": """
        ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette
        dig din dine disse dit dog du efter eller en end er et for fordi fra ham han hans
        har havde have hende hendes her hos hun hvad hvem hver hvilken hvis hvor hvordan
        hvorfor hvornår i ikke ind jeg jer jeres jo kan kunne man mange med meget men mig
        min mine mit mod mellem ned noget nogle nu når og også om op os over på sig sin sine
        sit skal skulle som så sådan thi til ud under var vi vil ville vor vore være været""",
    "no": """
        alle alt at av både ble blei bli blir da de deg dei dem den denne der deres det
        dette di din disse ditt du eller en enn er et etter for fordi fra få før ha hadde
        han hans har hennes her ho hos hun hva hvem hver hvilke hvilken hvis hvor hvordan
        hvorfor i ikke ingen inn ja jeg kan kunne kva man mange med meg mellom men mer min
        mitt mot mye må ned noe noen nå når og også om opp oss over på samme seg selv si sin
        sine sitt skal skulle slik som så til ut uten var vi ved vil ville vår være vært""",
    "sv": """
        all alla allt att av bara blev bli blir blivit de dem den denna deras dess dessa det
        detta dig din dina ditt du där då efter ej eller en er era ert ett från för genom ha
        hade han hans har henne hennes hon honom hur här i icke ingen inom inte jag ju kan
        kunde man med mellan men mer mig min mina mitt mot mycket ni nu när någon något
        några och om oss på samma sedan sig sin sina sitt själv ska skall skulle som så
        sådan till under upp ut utan vad var vara varför varit varje vars vart vem vi vid
        vilka vilken vilket vill vår våra vårt än är även åt över""",
    "fi": """
        ei eivät emme en että ette et hän häntä hänen he heidän heitä ja jo joka jolla jonka
        jos jossa jotka joita juuri kanssa kenen ketä kuin kuinka kuka kun me meidän meitä
        mikä mikään miksi milloin millä minkä minun minua minä missä mitä mitkä mukaan mutta
        myös ne nämä niiden niin niitä noin nyt näiden näitä ole olen olemme olet olette oli
        olisi olivat olla on ovat sekä se sen siellä siinä sillä sinun sinä sitä tai tällä
        tämä tämän tässä tätä te teidän tuo vaan vai vain voi ylös yli""",
    "pl": """
        a aby ale albo ani bardzo bez bo by być był była było były będzie będą ci cię co czy
        dla do gdy gdzie go i ich ile im inne ja jak jaka jaki jakie jako je jego jej jemu
        jest jestem jeśli jeszcze już każda każdy kiedy kto która które którego której który
        których ma mają mam mi między mną mnie może mój my na nad nam nas nie nich nim niż o
        od on ona one oni ono oraz pan po pod ponieważ przed przez przy są się skąd są swoje
        ta tak także tam te tego tej ten też to tu twój ty tych tylko tym u w we wam was
        wszystko z za ze że żeby""",
    "cs": """
        a aby ale ani asi až bez bude budou by byl byla byli bylo být co což či do ho i jak
        jako jaký je jeho jej její jejich jen jenž ještě ji jich jim jsem jsi jsme jsou jste
        k kam kde kdo kdy když ke která které který kteří ku má mají mezi mi mít mne mně
        může my na nad nám nás ne nebo něco není než nic o od on ona oni ono pak po pod
        podle pokud pro proč protože před při s se si sice své svůj ta tak také tam tato te
        ten tedy to toho tohoto tom tomu tu ty tyto u už v vám vás ve však vy z za zda zde
        ze že""",
    "ru": """
        а без более бы был была были было быть в вам вас ведь весь во вот все всего всех вы
        где да даже для до его ее её если есть ещё еще же за здесь и из или им их к как
        какая какой когда кто куда ли либо между меня мне может мой моя мы на над надо нам
        нас не него нее неё нет ни них но ну о об однако он она они оно от очень по под
        почему при про с сам свой себя со так также такой там те тебя тем то того тоже той
        только том тот ту ты у уже хотя чего чей чем что чтобы чьё эта эти это этого этой
        этом этот я""",
    "uk": """
        а або але без би був була були було бути в вам вас ви від він вона вони воно все всі
        де для до є її їх й його з за зі і із й коли кого ким крім ли між мене мені ми мій
        на над нам нас не немає ні ну о об от по під після при про саме свій себе та так
        також такий там те ти то того тоді той тому тут у уже хто це цей ця ці чи чого чому
        що щоб як яка який які я""",
    "tr": """
        ama ancak bana bazı belki ben beni benim bir biri bile biz bize bizi bizim bu buna
        bunda bundan bunlar bunu bunun çok çünkü da daha dahi de defa değil diye en gibi
        göre hangi hem hep her hiç için ile ise kadar ki kim kime mı mi mu mü nasıl ne neden
        nerede nereye niçin niye o olan olarak oldu olduğu olur ona ondan onlar onu onun
        sana sen seni senin siz sizin şey şu tüm var ve veya ya yani yok""",
    "hu": """
        a abban ahhoz ahol aki akik akkor alatt amely amelyek ami amíg amikor annak arra át
        az azok azon azonban azt aztán bár be csak de e egy egyik ehhez el ellen én és ez
        ezek ezen ezért ezt fel felé ha hanem hogy hogyan hol honnan hova is itt jól kell ki
        kívül köszönhetően le lehet lenni lesz lett maga már meg mely mert mi mikor milyen
        minden mint mit mivel most ne nélkül nem nincs ő ők őket olyan össze ott pedig sem s
        saját se sok számára szerint te tehát ti több úgy után utána vagy vagyok valaki van
        vannak vele volt voltak""",
    "ro": """
        a acea această aceasta aceste acest acesta aceștia acolo acum ai al ale alt am ar
        are aș așa asta astfel atât au avea avem aveți avut ca că când care căreia căror
        căruia ce cel cele cei ceva chiar ci cine cu cum cât da dacă dar de deci deja despre
        din dintre doar după ea ei el ele era erau este eu fi fie fiind foarte fost îi îl
        îmi în încă între îți la le li lor lui mă mai mea mei meu mi mult ne nici nimic noi
        noștri nostru nu o ori pe pentru peste prin sa să sale sau se și sub sunt suntem ta
        te tu un una unde unei unor unui va vă voi vom vostru""",
    "ca": """
        a al als altre altres amb aquell aquella aquelles aquells aquest aquesta aquestes
        aquests així abans aquí cada com contra d de del dels des després doncs durant el
        ell ella elles ells els em en encara entre era eren es és això ésser està estan
        estat fa fins fou ha han havia hi ho i jo l la les li llur lo m més meu meva mi
        mentre molt n ne ni no nosaltres nostra nostre o on pel pels per però perquè poc
        qual quals quan que què qui s sa se sense ser seu seva seus si sigui sobre són sota
        sóc sou també t tan te tot tota tots tu un una uns va van vosaltres""",
    "el": """
        αλλά αν αντί από αυτά αυτές αυτή αυτό αυτοί αυτός αυτού αυτών για γιατί δε δεν εάν
        εγώ είμαι είναι εκεί εκείνα εκείνη εκείνο εκείνος εμείς ένα ένας έναν εσύ εσείς ενώ
        επειδή επί έχει έχουν ή ήταν η θα και κατά κάθε κι μα με μεταξύ μετά μη μην μια μία
        μου μας να ο οι όμως όπου όπως ός όταν ότι ου ούτε παρά περί πιο ποια ποιο ποιος
        πολύ πού που πριν προς πώς πως σαν σας σε στα στη στην στις στο στον στους συ τα τη
        την της τι τις το τον τότε του τους των ως""",
    "id": """
        ada adalah agar akan aku anda antara apa apakah atas atau bagaimana bagi bahwa
        banyak beberapa belum berapa bila bisa boleh bukan dalam dan dapat dari daripada
        dengan di dia hanya harus hingga ia ini itu jadi jika juga kalau kami kamu kapan
        karena ke kepada kita lagi lain maka masih mengapa mereka namun oleh pada para
        pernah saat saja sangat saya sebagai sebelum sedang sejak seperti serta sesudah
        setelah siapa sudah tanpa telah tentang terhadap tetapi tidak untuk yang""",
    "ja": """
        の に は を た が で て と し れ さ あ い も な よ か や へ ね ら り る ん
        から まで です ます した する して いる ある この その あの これ それ こと もの""",
    "zh": """
        的 了 在 是 我 你 您 他 她 它 们 和 就 不 都 也 很 着 这 那 与 及 或 吗 呢 吧 啊 之 而 把 被
        我们 你们 他们 这个 那个 什么 怎么 如何 为什么""",
}
"""ISO 639-1 code → words separated by blanks."""
