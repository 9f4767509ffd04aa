/* SPDX-License-Identifier: MIT
**
** hip_version.h - of the stand-in for HIP.
*/
#define HIP_VERSION_MAJOR 6
