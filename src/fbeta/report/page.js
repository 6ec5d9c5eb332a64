"use strict";
// What every page does: it changes between light and dark, and says what a finger or the mouse is on.
const $ = (id) => document.getElementById(id);
const all = (query, root = document) => [...root.querySelectorAll(query)];

// Light and dark: the system's, until the button says otherwise; kept where the browser keeps anything for files.
const kept = (value) => {
  try {
    if (value) localStorage.setItem("fbeta-theme", value);
    return localStorage.getItem("fbeta-theme");
  } catch { return null; }
};
if (["light", "dark"].includes(kept())) document.documentElement.dataset.theme = kept();
const theme = $("theme"), systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (systemIsDark.matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
theme.hidden = false;
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = kept(isDark() ? "light" : "dark") ?? (isDark() ? "light" : "dark");
  nameTheme();
});
systemIsDark.addEventListener("change", nameTheme);
nameTheme();

// The title of a part of a picture, below it: a finger cannot hover, and a browser waits before it shows a title.
all("figure:has(svg)").forEach((figure) => {
  const readout = figure.appendChild(document.createElement("p"));
  readout.className = "readout";
  figure.addEventListener("pointerover", (event) => {
    const title = event.target.querySelector(":scope > title");
    readout.textContent = title ? title.textContent : "";
  });
});

// Paper has nothing to unfold.
addEventListener("beforeprint", () => all("details").forEach((part) => { part.open = true; }));
