// On a phone, the sections of a page that is longer than nine screens are folded. A link to a section opens it.
(() => {
  const article = document.querySelector("article");
  if (!article || innerWidth >= 768 || article.scrollHeight <= 9 * innerHeight) {
    return;
  }
  const levels = article.querySelectorAll(":scope > h2").length > 1 ? ["H2"] : ["H2", "H3"];
  for (const heading of article.querySelectorAll(`:scope > ${levels.at(-1)}`)) {
    const section = document.createElement("details");
    const title = document.createElement("summary");
    heading.before(section);
    title.append(heading);
    section.append(title);
    while (section.nextSibling && !levels.includes(section.nextSibling.nodeName)) {
      section.append(section.nextSibling);
    }
  }
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const section = target?.closest("details");
    if (section) {
      section.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
})();
