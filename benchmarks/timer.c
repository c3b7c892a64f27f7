/* Times of routines that all have the C ABI of our kernels; seconds per call. */

#include <stdint.h>
#include <time.h>

typedef int32_t (*Routine)(const double *in, double *out, double *work);
typedef void (*BatchRoutine)(const double *in, int64_t inputs, double *out, int64_t outputs,
                             int32_t *status, int64_t n, const int64_t *pick, int64_t picked,
                             double *work);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Run through `count` inputs, `step` doubles apart, `loops` times; one time per sample. */
void time_warm(Routine f, const double *in, int64_t count, int64_t step, double *out,
               double *work, int64_t loops, int64_t samples, double *times) {
  for (int64_t s = 0; s < samples; ++s) {
    const double start = now();
    for (int64_t k = 0; k < loops; ++k)
      for (int64_t i = 0; i < count; ++i)
        f(in + i * step, out, work);
    times[s] = (now() - start) / (double)(loops * count);
  }
}

/* The same, one call at a time, after a walk through `size` bytes that leaves nothing else in
   the caches that are smaller. */
void time_cold(Routine f, const double *in, int64_t count, int64_t step, double *out,
               double *work, volatile char *memory, int64_t size, int64_t samples,
               double *times) {
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t k = 0; k < size; k += 64)
      memory[k] = (char)(memory[k] + 1);
    const double start = now();
    f(in + (s % count) * step, out, work);
    times[s] = now() - start;
  }
}

/* A matrix for each input, `step_out` doubles apart. */
void time_each(Routine f, const double *in, int64_t count, int64_t step, double *out,
               int64_t step_out, double *work, int64_t loops, int64_t samples, double *times) {
  for (int64_t s = 0; s < samples; ++s) {
    const double start = now();
    for (int64_t k = 0; k < loops; ++k)
      for (int64_t i = 0; i < count; ++i)
        f(in + i * step, out + i * step_out, work);
    times[s] = (now() - start) / (double)(loops * count);
  }
}

/* The same by a batch kernel, seconds per configuration. */
void time_batch(BatchRoutine f, const double *in, int64_t inputs, double *out, int64_t outputs,
                int32_t *status, int64_t n, const int64_t *pick, int64_t picked, double *work,
                int64_t loops, int64_t samples, double *times) {
  for (int64_t s = 0; s < samples; ++s) {
    const double start = now();
    for (int64_t k = 0; k < loops; ++k)
      f(in, inputs, out, outputs, status, n, pick, picked, work);
    times[s] = (now() - start) / (double)(loops * n);
  }
}
