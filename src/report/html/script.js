(() => {
  "use strict";
  const box = document.getElementById("q");
  if (!box) return;
  const found = document.getElementById("found");
  const lines = [...document.querySelectorAll("#log .lines li")];
  const texts = lines.map((line) => line.textContent.toLowerCase());
  box.closest("p").hidden = false;
  let timer = 0;
  const search = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    lines.forEach((line, at) => {
      const hit = words.every((word) => texts[at].includes(word));
      line.hidden = !hit;
      hits += hit ? 1 : 0;
    });
    if (words.length) document.querySelectorAll("#log details").forEach((part) => { part.open = true; });
    found.textContent = words.length ? hits + " of " + lines.length + " lines" : "";
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 80);
  });
})();
