/* SPDX-License-Identifier: MIT
**
** rccl.h - a stand-in for RCCL's header, where no ROCm is: NCCL's, whose names and types RCCL has.
*/
#include <nccl.h>
