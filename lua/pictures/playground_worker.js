/* SPDX-License-Identifier: MIT
**
** playground_worker.js - a worker that passes requests to the module, whose script stands before this one. It gets the
** compiled module first, then one request after the other. The page ends the worker if an answer takes too long.
*/
let ready;
onunhandledrejection = e => { throw e.reason; }; // so that the page hears of it
onmessage = async ({ data }) => {
  if (typeof data !== "string") {
    ready = moongrid({ instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(data, imports).then(instance => done(instance, data));
      return {};
    } });
    await ready;
    postMessage("ready");
    return;
  }
  const m = await ready, request = m.stringToNewUTF8(data), answer = m.ccall("mgrid_page_answer", "number", ["number"], [request]);
  const text = m.UTF8ToString(answer);
  m._free(request);
  m._free(answer);
  postMessage(text);
};
