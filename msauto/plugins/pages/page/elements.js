"use strict";
// Elements are made here alone. Texts become text nodes: nothing on the page is parsed as HTML.

const SIGN = { add: "+", change: "~", delete: "−", run: "▶", "": "" };

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Make an HTML element. */
const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** Make an SVG element. */
const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
