// Shows that an upload is on its way, and moves the bar of an import. Both work without it.
"use strict";

{
  const upload = document.getElementById("hy-import");
  const sending = document.getElementById("hy-sending");
  if (upload && sending) {
    upload.addEventListener("submit", () => {
      sending.hidden = false;
    });
    window.addEventListener("pageshow", () => {
      sending.hidden = true;
    });
  }
}

// A job as JSON; {} where there is none any more, and null while no server answers.
const jobAt = async (address) => {
  try {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    return answer.ok ? await answer.json() : {};
  } catch {
    return null;
  }
};

{
  const bar = document.getElementById("hy-progress");
  const follow = async () => {
    const job = await jobAt(bar.dataset.job);
    if (!job) {
      bar.querySelector("span").textContent = "The server does not answer. Asking again …";
      setTimeout(follow, 2000);
      return;
    }
    if (job.state !== "running") {
      location.reload();
      return;
    }
    const [embedded, passages] = job.embedding || [];
    const moving = bar.querySelector("progress");
    moving.max = passages || job.total;
    moving.value = passages ? embedded : job.done;
    const batch = passages ? `, ${embedded} of ${passages} passages of this batch embedded` : "";
    bar.querySelector("span").textContent = `${job.done} of ${job.total} files read${batch}`;
    setTimeout(follow, 700);
  };
  if (bar) {
    follow();
  }
}

{
  const note = document.getElementById("hy-embedding");
  const follow = async () => {
    const job = await jobAt(note.dataset.job);
    if (job && !job.meaning) {
      location.reload();
      return;
    }
    if (job && note.textContent !== job.meaning) {
      note.textContent = job.meaning;
    }
    setTimeout(follow, 5000);
  };
  if (note) {
    setTimeout(follow, 2000);
  }
}
