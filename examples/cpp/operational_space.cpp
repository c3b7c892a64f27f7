// An operational-space controller in C++: torques that give one foot an acceleration, while others
// keep a posture without the foot feeling it. From the repository's folder:
//
//   delassus export config/quadruped.yaml --urdf delassus/robots/built_in/quadruped.urdf --outputs J,MinvJT,h,JdotV -o quadruped.o --header quadruped.h
//   g++ -std=c++17 -O2 -I . examples/cpp/operational_space.cpp quadruped.o -lm -o operational_space
//
// It reads numbers, one tick after the other: the inputs of the kernel in their order (q, rates,
// gravity), the wanted acceleration of the foot (3) and torques of the posture, one for each velocity.
// It prints the torques. Nothing is allocated.

#include <cstdio>

#include "cholesky.hpp"
#include "quadruped.h"

constexpr int FOOT = 0;  // contact 0 and its rows
constexpr int N = QUADRUPED_VELOCITIES, M = QUADRUPED_ROWS, K = 3;

// With the mass matrix M, its bias forces h, and a task whose rows are J:
//   tau = J^T (L a + mu + p) + N^T tau_0,  L = (J M^-1 J^T)^-1,  mu + p = L (J M^-1 h - Jdot v),
// in one solution with G, as N^T tau_0 = tau_0 - J^T L J M^-1 tau_0.
bool torques_of(const double *out, const double *wanted, const double *posture, double *torques) {
  const double *G = out + QUADRUPED_OUT_G, *J = out + QUADRUPED_OUT_J;
  const double *response = out + QUADRUPED_OUT_MINVJT, *h = out + QUADRUPED_OUT_H;
  const double *JdotV = out + QUADRUPED_OUT_JDOTV;
  const int first = static_cast<int>(quadruped_row_offsets[FOOT]);
  double active[K * K], force[K];
  for (int i = 0; i < K; ++i) {
    for (int j = 0; j < K; ++j) active[i * K + j] = G[(first + i) * M + first + j];
    force[i] = wanted[i] - JdotV[first + i];
    for (int n = 0; n < N; ++n) force[i] += response[n * M + first + i] * (h[n] - posture[n]);
  }
  if (!cholesky::factorise(active, K)) return false;  // a singular posture
  cholesky::solve(active, K, force);
  for (int n = 0; n < N; ++n) {
    torques[n] = posture[n];
    for (int i = 0; i < K; ++i) torques[n] += J[(first + i) * N + n] * force[i];
  }
  return true;
}

bool read(double *numbers, int count) {
  for (int k = 0; k < count; ++k)
    if (std::scanf("%lf", numbers + k) != 1) return false;
  return true;
}

int main() {
  static double in[QUADRUPED_IN_SIZE], out[QUADRUPED_OUT_SIZE], work[QUADRUPED_WORK_SIZE + 1];
  static double wanted[K], posture[N], torques[N];
  while (read(in, QUADRUPED_IN_SIZE) && read(wanted, K) && read(posture, N)) {
    const auto status = quadruped_kernel(in, out, work);
    if (status != QUADRUPED_OK || !torques_of(out, wanted, posture, torques)) {
      std::printf("no torques: status %d\n", static_cast<int>(status));
      continue;
    }
    for (int n = 0; n < N; ++n) std::printf("%.17g%c", torques[n], n + 1 < N ? ' ' : '\n');
  }
}
