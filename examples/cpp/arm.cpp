// The operational-space law of examples/operational_space in C++: what a ros2_control controller would
// call. From the repository's folder:
//
//   python -m delassus.robots.built_in.arm > arm.urdf
//   delassus export examples/operational_space/node.yaml --urdf arm.urdf --outputs J,MinvJT,h,JdotV -o arm.o --header arm.h
//   g++ -std=c++17 -O2 -I . examples/cpp/arm.cpp arm.o -lm -o arm
//
// It reads doubles in binary, one tick after the other: the inputs of the kernel in their order (q,
// rates, gravity), the wanted acceleration of the tool's five rows, what it is to press with in these
// rows, and torques of the posture. It answers with the torques, in binary. Nothing is allocated:
// python -m operational_space.simulate --program ./arm moves the arm of the example with it.

#include <cstdint>
#include <cstring>

#include <unistd.h>

#include "arm.h"
#include "weak.hpp"

constexpr int N = ARM_VELOCITIES, K = ARM_ROWS;
constexpr double DAMPING = 0.02, LENGTH = 0.1;  // m, of angular rows
constexpr double SCALES[K] = {1.0, 1.0, 1.0, LENGTH, LENGTH};

struct Tick {
  double in[ARM_IN_SIZE], wanted[K], press[K], posture[N];
};

//   tau = J^T (L a + mu + p + F) + N^T tau_0,  mu + p = L (J M^-1 h - Jdot v)
void torques_of(const double *out, const Tick &tick, double *torques) {
  const double *J = out + ARM_OUT_J, *response = out + ARM_OUT_MINVJT, *h = out + ARM_OUT_H;
  double L[K * K], needed[K], force[K];
  weak::inverse(out + ARM_OUT_G, SCALES, DAMPING, K, L);
  for (int i = 0; i < K; ++i) {
    needed[i] = tick.wanted[i] - out[ARM_OUT_JDOTV + i];
    for (int n = 0; n < N; ++n) needed[i] += response[n * K + i] * (h[n] - tick.posture[n]);
  }
  for (int i = 0; i < K; ++i) {
    force[i] = tick.press[i];
    for (int j = 0; j < K; ++j) force[i] += L[i * K + j] * needed[j];
  }
  for (int n = 0; n < N; ++n) {
    torques[n] = tick.posture[n];
    for (int i = 0; i < K; ++i) torques[n] += J[i * N + n] * force[i];
  }
}

bool transfer(ssize_t (*move)(int, char *, size_t), int file, void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t now = move(file, static_cast<char *>(data) + done, size - done);
    if (now <= 0) return false;
    done += static_cast<size_t>(now);
  }
  return true;
}

ssize_t take(int file, char *data, size_t size) { return read(file, data, size); }
ssize_t give(int file, char *data, size_t size) { return write(file, data, size); }

int main() {
  static Tick tick;
  static double out[ARM_OUT_SIZE], work[ARM_WORK_SIZE + 1], torques[N];
  while (transfer(take, STDIN_FILENO, &tick, sizeof tick)) {
    const std::int32_t status = arm_kernel(tick.in, out, work);
    if (status == ARM_OK)
      torques_of(out, tick, torques);
    else  // not a number; the drives are then told nothing
      std::memset(torques, 0xff, sizeof torques);
    if (!transfer(give, STDOUT_FILENO, torques, sizeof torques)) return 1;
  }
}
