/* SPDX-License-Identifier: MIT
**
** dom.js - what the scripts of pages share. Texts of users go into text nodes alone.
*/
const $ = id => document.getElementById(id);
// Make an element. An attribute that is a function becomes a listener; children are elements and texts, never markup.
const el = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(key, value);
    else if (value !== undefined && value !== false) e.setAttribute(key, value);
  }
  e.append(...children.flat(Infinity).filter(c => c !== undefined && c !== null && c !== false && c !== ""));
  return e;
};
const s_of = n => n === 1 ? "" : "s";
const count_of = n => n.toLocaleString("en-US");
