// Cholesky factorisation of small matrices, without memory of its own: row-major, in place.
#pragma once

#include <cmath>

namespace cholesky {

// Factorise the symmetric n x n matrix A = L L^T; L is left in its lower triangle. Returns whether A
// is positive definite.
inline bool factorise(double *A, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = A[i * n + j];
      for (int k = 0; k < j; ++k) sum -= A[i * n + k] * A[j * n + k];
      if (i != j) {
        A[i * n + j] = sum / A[j * n + j];
      } else if (sum > 0.0) {
        A[i * n + i] = std::sqrt(sum);
      } else {
        return false;  // not a number, too
      }
    }
  }
  return true;
}

// Solve L L^T x = b in place.
inline void solve(const double *L, int n, double *b) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < i; ++k) b[i] -= L[i * n + k] * b[k];
    b[i] /= L[i * n + i];
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) b[i] -= L[k * n + i] * b[k];
    b[i] /= L[i * n + i];
  }
}

}  // namespace cholesky
