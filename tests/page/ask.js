// SPDX-License-Identifier: MIT
//
// ask.js: what moongrid in WebAssembly answers in node: each line of stdin is a request, and becomes a line of the answer.
// CLOCK=100: the clock runs so many times as fast.

const fs = require("fs");
const moongrid = require("../../build/wasm/moongrid.js");
const real = process.hrtime, times = Number(process.env.CLOCK || 1);
process.hrtime = () => {
  const [seconds, rest] = real(), ns = (seconds * 1e9 + rest) * times;
  return [Math.floor(ns / 1e9), ns % 1e9];
};

moongrid({ wasmBinary: fs.readFileSync("build/wasm/moongrid.wasm") }).then(m => {
  for (const request of fs.readFileSync(0, "utf8").split("\n")) {
    if (!request) continue;
    const text = m.stringToNewUTF8(request);
    const answer = m.ccall("mgrid_page_answer", "number", ["number"], [text]);
    fs.writeSync(1, m.UTF8ToString(answer).replaceAll("\n", "\\u000a") + "\n");
    m._free(answer);
    m._free(text);
  }
});
