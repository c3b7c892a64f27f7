// The inverse of a small symmetric matrix whose weak directions are raised, without memory of its own.
#pragma once

#include <algorithm>
#include <cmath>

#include "cholesky.hpp"

namespace weak {

constexpr int MOST = 12;  // rows

// Turn the symmetric n x n matrix A to its eigenvalues, on its diagonal, by Jacobi's rotations; the
// columns of V are the eigenvectors.
inline void eigen(double *A, double *V, int n) {
  for (int i = 0; i < n * n; ++i) V[i] = i % (n + 1) == 0;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0.0, all = 0.0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) (i == j ? all : off) += A[i * n + j] * A[i * n + j];
    if (off <= 1e-32 * all) return;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        if (A[p * n + q] == 0.0) continue;
        const double theta = 0.5 * (A[q * n + q] - A[p * n + p]) / A[p * n + q];
        const double t =
            (theta < 0.0 ? -1.0 : 1.0) / (std::fabs(theta) + std::sqrt(theta * theta + 1.0));
        const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
        for (int k = 0; k < n; ++k) {
          const double a = A[k * n + p], b = A[k * n + q];
          A[k * n + p] = c * a - s * b, A[k * n + q] = s * a + c * b;
        }
        for (int k = 0; k < n; ++k) {
          const double a = A[p * n + k], b = A[q * n + k];
          A[p * n + k] = c * a - s * b, A[q * n + k] = s * a + c * b;
          const double u = V[k * n + p], v = V[k * n + q];
          V[k * n + p] = c * u - s * v, V[k * n + q] = s * u + c * v;
        }
      }
  }
}

// Write the inverse of G (n x n) to L: S G S, whose rows are of one unit, with eigenvalues below
// `floor` times the largest raised to that. The eigenvalues are needed only where a shifted Cholesky
// factorisation does not certify that none is so weak.
inline void inverse(const double *G, const double *scales, double floor, int n, double *L) {
  double A[MOST * MOST], shifted[MOST * MOST], V[MOST * MOST], bound = 0.0;
  for (int i = 0; i < n; ++i) {
    double sum = 0.0;
    for (int j = 0; j < n; ++j) {
      A[i * n + j] = G[i * n + j] * scales[i] * scales[j];
      sum += std::fabs(A[i * n + j]);
    }
    bound = std::max(bound, sum);
  }
  std::copy(A, A + n * n, shifted);
  for (int i = 0; i < n; ++i) shifted[i * n + i] -= floor * bound;
  if (cholesky::factorise(shifted, n) && cholesky::factorise(A, n)) {
    for (int j = 0; j < n; ++j) {
      double column[MOST] = {};
      column[j] = 1.0;
      cholesky::solve(A, n, column);
      for (int i = 0; i < n; ++i) L[i * n + j] = column[i] * scales[i] * scales[j];
    }
    return;
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) A[i * n + j] = G[i * n + j] * scales[i] * scales[j];
  eigen(A, V, n);
  double largest = 0.0;
  for (int k = 0; k < n; ++k) largest = std::max(largest, A[k * n + k]);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int k = 0; k < n; ++k)
        sum += V[i * n + k] * V[j * n + k] / std::max(A[k * n + k], floor * largest);
      L[i * n + j] = sum * scales[i] * scales[j];
    }
}

}  // namespace weak
