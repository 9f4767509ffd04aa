/* SPDX-License-Identifier: MIT
**
** cudart.h - what the files of the stand-in libcudart share.
*/
#ifndef STANDIN_CUDART_H
#define STANDIN_CUDART_H

#include "standin.h"

/* Keeps e for cudaGetLastError and gives it back. */
cudaError_t cuda_answer(cudaError_t e);

/* The same, with a line: the caller has broken a rule of CUDA. */
cudaError_t cuda_wrong(cudaError_t e, const char *format, ...) SI_PRINTF(2);

int  cuda_device(void);                      /* of this thread */
bool cuda_live(const void *p, size_t bytes); /* inside a live allocation of any device */

/* Waits until all that is on the streams of the device (-1: of all) now is done. */
void cuda_drain(int device);

/* Runs work on the stream; waits for it as well, if asked to. */
cudaError_t cuda_submit(cudaStream_t stream, cudaError_t (*work)(void *), void *arg, bool wait);

void cuda_stream_leaks(void);
void standin_cuda_leaks(void);

#endif
