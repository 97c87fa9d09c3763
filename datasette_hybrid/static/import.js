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

{
  const bar = document.getElementById("hy-progress");
  const follow = async () => {
    const answer = await fetch(bar.dataset.job, { headers: { Accept: "application/json" } });
    const job = answer.ok ? await answer.json() : { state: "gone" };
    if (job.state !== "running") {
      location.reload();
      return;
    }
    bar.querySelector("progress").value = job.done;
    bar.querySelector("span").textContent = `${job.done} of ${job.total} files`;
    setTimeout(follow, 700);
  };
  if (bar) {
    follow();
  }
}
