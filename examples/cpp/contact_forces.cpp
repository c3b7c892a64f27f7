// A torque controller that keeps the feet from sliding: of the torques that it wants it takes the
// largest share at which the predicted contact forces stay in their friction cones. From the
// repository's folder:
//
//   delassus export delassus/robots/built_in/quadruped.urdf --contact LF=LF_FOOT --contact RF=RF_FOOT --contact LH=LH_FOOT --contact RH=RH_FOOT --axes world --outputs a0 --friction -o quadruped.o --header quadruped.h
//   g++ -std=c++17 -O2 -I . examples/cpp/contact_forces.cpp quadruped.o quadruped_forces.o -lm -o contact_forces
//
// It reads numbers, one tick after the other: the inputs of the kernel in their order (q, orientation
// of the base, rates, torques that hold, gravity), then the wanted torques, one for each velocity. It
// prints the share, the status of the forces, the number of steps, and the forces of the feet, in
// the axes of the world. Nothing is allocated.

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "quadruped.h"
#include "quadruped_forces.h"

constexpr int N = QUADRUPED_VELOCITIES, M = QUADRUPED_ROWS, FEET = QUADRUPED_CONTACTS;
constexpr double FRICTION = 0.6;  // of the floor, as it is believed
constexpr double RESERVE = 0.9;   // share of the friction that the feet may use
constexpr double SHARES[] = {1.0, 0.75, 0.5, 0.25, 0.0};

struct Forces {
  double foot[M], acceleration[M], info[QUADRUPED_FORCES_INFO_SIZE];
  double start[QUADRUPED_FORCES_CONE_ROWS];  // those of the last call begin the next one
  std::int64_t status;
};

// The forces of all feet under the torques that are in the inputs; returns the kernel's status.
std::int32_t predict(const double *in, double *out, Forces &forces) {
  static double work[QUADRUPED_WORK_SIZE + 1], scratch[QUADRUPED_FORCES_WORK_SIZE];
  static std::int64_t indices[QUADRUPED_FORCES_INDEX_SIZE];
  static const std::int64_t feet[FEET] = {0, 1, 2, 3};
  static const double friction[FEET] = {FRICTION, FRICTION, FRICTION, FRICTION};
  const std::int32_t status = quadruped_kernel(in, out, work);
  if (status != QUADRUPED_OK) return status;
  forces.status = quadruped_contact_forces(
      feet, FEET, QUADRUPED_FORCES_COULOMB, QUADRUPED_FORCES_BUDGET, QUADRUPED_FORCES_TOLERANCE, friction,
      nullptr, nullptr, nullptr, out + QUADRUPED_OUT_G, out + QUADRUPED_OUT_A0, out + QUADRUPED_OUT_V,
      forces.start, forces.foot, forces.acceleration, forces.info, nullptr, scratch, indices);
  return status;
}

// Whether all feet push, with friction to spare. Forces that are not SOLVED hold nothing.
bool holds(const Forces &forces) {
  if (forces.status != QUADRUPED_FORCES_SOLVED) return false;
  for (int k = 0; k < FEET; ++k) {
    const double *f = forces.foot + 3 * k;
    if (!(f[2] > 0.0 && std::hypot(f[0], f[1]) <= RESERVE * FRICTION * f[2])) return false;
  }
  return true;
}

bool read(double *numbers, int count) {
  for (int k = 0; k < count; ++k)
    if (std::scanf("%lf", numbers + k) != 1) return false;
  return true;
}

int main() {
  static double in[QUADRUPED_IN_SIZE], out[QUADRUPED_OUT_SIZE], hold[N], wanted[N];
  static Forces forces;
  double *torques = in + QUADRUPED_IN_TORQUES;
  while (read(in, QUADRUPED_IN_SIZE) && read(wanted, N)) {
    for (int n = 0; n < N; ++n) hold[n] = torques[n];
    double taken = 0.0;
    std::int32_t status = QUADRUPED_OK;
    for (double share : SHARES) {
      for (int n = 0; n < N; ++n) torques[n] = hold[n] + share * (wanted[n] - hold[n]);
      status = predict(in, out, forces);
      taken = share;
      if (status != QUADRUPED_OK || holds(forces)) break;
    }
    if (status != QUADRUPED_OK) {
      std::printf("no forces: status %d\n", static_cast<int>(status));
      continue;
    }
    std::printf("%g %d %d", taken, static_cast<int>(forces.status),
                static_cast<int>(forces.info[0] + forces.info[1] + forces.info[2]));
    for (int i = 0; i < M; ++i) std::printf(" %.17g", forces.foot[i]);
    std::printf("\n");
  }
}
