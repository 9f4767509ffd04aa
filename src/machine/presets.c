/* SPDX-License-Identifier: MIT
**
** presets.c - machines from public data sheets. The link of a level is what one of its domains can send at a time, in
** one direction: of a gpu its share of NVLink or xGMI, of a node the sum of its network ports.
*/
#include "machine/model.h"

const mgrid_preset mgrid_presets[] = {
  { "dgx-a100", "node:*[200GB/s] gpu:8[300GB/s] rail = gpu[25GB/s]",
    "NVIDIA DGX A100 data sheet: 8 A100 with NVLink 3 at 600 GB/s (both directions), 8 ConnectX-6 ports of 200 Gb/s" },
  { "dgx-b200", "node:*[400GB/s] gpu:8[900GB/s] rail = gpu[50GB/s]",
    "NVIDIA DGX B200 data sheet: 8 B200 with NVLink 5 at 1.8 TB/s (both directions), 8 ConnectX-7 ports of 400 Gb/s" },
  { "dgx-h100", "node:*[400GB/s] gpu:8[450GB/s] rail = gpu[50GB/s]",
    "NVIDIA DGX H100 data sheet: 8 H100 with NVLink 4 at 900 GB/s (both directions), 8 ConnectX-7 ports of 400 Gb/s" },
  { "dgx-h200", "node:*[400GB/s] gpu:8[450GB/s] rail = gpu[50GB/s]",
    "NVIDIA DGX H200 data sheet: 8 H200 with NVLink 4 at 900 GB/s (both directions), 8 ConnectX-7 ports of 400 Gb/s" },
  { "gb200-nvl72", "rack:*[3600GB/s] node:18[3600GB/s] gpu:4[900GB/s] rail = gpu[50GB/s]",
    "NVIDIA GB200 NVL72 data sheet: a rack is one NVLink domain of 18 compute trays with 4 B200 each, NVLink 5 at 1.8 "
    "TB/s "
    "a GPU (both directions); network: 4 ConnectX-7 ports of 400 Gb/s a tray" },
  { "mi300x", "node:*[400GB/s] gpu:8[448GB/s] rail = gpu[50GB/s]",
    "AMD Instinct MI300X platform data sheet: 8 MI300X, each with 7 links of Infinity Fabric at 128 GB/s (both "
    "directions); network: 8 ports of 400 Gb/s, as the platform's reference designs have" },
  { NULL, NULL, NULL },
};

bool mgrid_machine_preset(size_t i, const char **name, const char **text, const char **source) {
  size_t n = sizeof mgrid_presets / sizeof *mgrid_presets - 1;
  bool   there = i < n;
  if (name) *name = there ? mgrid_presets[i].name : NULL;
  if (text) *text = there ? mgrid_presets[i].text : NULL;
  if (source) *source = there ? mgrid_presets[i].source : NULL;
  return there;
}
