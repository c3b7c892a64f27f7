// A controller that has the Delassus matrix in its own process. From the repository's folder:
//
//   delassus export config/quadruped.yaml --urdf delassus/robots/built_in/quadruped.urdf -o quadruped.o --header quadruped.h
//   g++ -std=c++17 -O2 -I . examples/cpp/controller.cpp quadruped.o -lm -o controller
//   echo "0 0.7 -1.4 0 0.7 -1.4 0 0.7 -1.4 0 0.7 -1.4" | ./controller LF RH
//
// It reads joint positions, one configuration per line, and prints the matrix of the contacts
// named on the command line (all of them if none is).

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "quadruped.h"

constexpr int USER_ERROR = 2;

// Whether the robot has a contact of this name; if not, says which it has.
bool is_contact(const char *name) {
  for (const char *contact : quadruped_contacts)
    if (!std::strcmp(name, contact)) return true;
  std::fprintf(stderr, "unknown contact '%s'; contacts:", name);
  for (const char *contact : quadruped_contacts) std::fprintf(stderr, " %s", contact);
  std::fprintf(stderr, "\n");
  return false;
}

int main(int argc, char **argv) {
  for (int k = 1; k < argc; ++k)
    if (!is_contact(argv[k])) return USER_ERROR;
  std::vector<std::int64_t> rows;  // of the active contacts, in the order of the layout
  for (int contact = 0; contact < QUADRUPED_CONTACTS; ++contact) {
    bool active = argc == 1;
    for (int k = 1; k < argc; ++k) active |= !std::strcmp(argv[k], quadruped_contacts[contact]);
    for (auto r = quadruped_row_offsets[contact]; active && r < quadruped_row_offsets[contact + 1]; ++r)
      rows.push_back(r);
  }
  const auto size = static_cast<std::int64_t>(rows.size());

  // All memory is there before the loop: the control loop allocates nothing.
  std::vector<double> in(QUADRUPED_IN_SIZE), out(QUADRUPED_OUT_SIZE), G(size * size);
  std::vector<double> work(QUADRUPED_WORK_SIZE);  // scratch of the kernel
  while (true) {
    for (std::size_t k = 0; k < in.size(); ++k) {
      std::string word;
      if (!(std::cin >> word)) {
        if (k == 0) return 0;
        std::fprintf(stderr, "expected %zu joint positions, got %zu\n", in.size(), k);
        return USER_ERROR;
      }
      char *end;
      in[k] = std::strtod(word.c_str(), &end);
      if (*end) {
        std::fprintf(stderr, "joint position %zu: '%s' is no number\n", k + 1, word.c_str());
        return USER_ERROR;
      }
    }
    const std::int32_t status = quadruped_kernel(in.data(), out.data(), work.data());
    if (status != QUADRUPED_OK) {
      std::fprintf(stderr, "the matrix cannot be computed: status %d\n", static_cast<int>(status));
      return 1;
    }
    quadruped_slice(out.data() + QUADRUPED_OUT_G, QUADRUPED_ROWS, rows.data(), size, G.data());
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t j = 0; j < size; ++j)
        std::printf("%.17g%c", G[i * size + j], j + 1 < size ? ' ' : '\n');
  }
}
