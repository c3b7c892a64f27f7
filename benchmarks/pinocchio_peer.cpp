// Pinocchio's routes to the Delassus matrix behind the C ABI of our kernels:
// int32_t routine(const double *q, double *G, double *state), G column-major.
//
// Everything comes from headers: the wheel's libraries are built for an older processor,
// and code for this one would lay out its matrices differently from theirs.
//
// Only what is asked for by PEER_EFPA, PEER_ROUTES, PEER_OUTPUTS and PEER_DYNAMICS is compiled:
// each takes a minute and more.

#include <cstdint>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Cholesky>

#include <pinocchio/multibody.hpp>
#if defined(PEER_EFPA) || defined(PEER_ROUTES)
#include <pinocchio/algorithm/delassus.hpp>
#else
#include <pinocchio/constraints.hpp>
#endif
#ifdef PEER_ROUTES
#include <pinocchio/algorithm/constraint-cholesky.hpp>
#endif
#if defined(PEER_ROUTES) || defined(PEER_OUTPUTS)
#include <pinocchio/algorithm/cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#endif
#ifdef PEER_OUTPUTS
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#endif
#ifdef PEER_DYNAMICS
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#endif

namespace pin = pinocchio;

namespace {

// Without it the factorisation of redundant contacts divides by zero; G comes out plus this
// times the identity.
constexpr double damping = 1e-9;

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

pin::SE3 read_pose(std::istream &in) {
  pin::SE3 pose;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      in >> pose.rotation()(i, j);
  for (int i = 0; i < 3; ++i)
    in >> pose.translation()[i];
  return pose;
}

pin::Inertia read_inertia(std::istream &in) {
  double mass;
  pin::Inertia::Vector3 lever;
  pin::Inertia::Matrix3 about_com;
  in >> mass;
  for (int i = 0; i < 3; ++i)
    in >> lever[i];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      in >> about_com(i, j);
  return pin::Inertia(mass, lever, about_com);
}

pin::JointModel joint_of(const std::string &kind) {
  if (kind == "JointModelRX") return pin::JointModelRX();
  if (kind == "JointModelRY") return pin::JointModelRY();
  if (kind == "JointModelRZ") return pin::JointModelRZ();
  if (kind == "JointModelPX") return pin::JointModelPX();
  if (kind == "JointModelPY") return pin::JointModelPY();
  if (kind == "JointModelPZ") return pin::JointModelPZ();
  if (kind == "JointModelFreeFlyer") return pin::JointModelFreeFlyer();
  throw std::runtime_error("unknown joint kind " + kind);
}

using Contacts = std::vector<pin::RigidConstraintModel,
                             Eigen::aligned_allocator<pin::RigidConstraintModel>>;
using ContactData = std::vector<pin::RigidConstraintData,
                                Eigen::aligned_allocator<pin::RigidConstraintData>>;

struct Peer {
  pin::Model model;
  Contacts contacts;
  ContactData contact_data;
  std::unique_ptr<pin::Data> data;
#ifdef PEER_ROUTES
  std::unique_ptr<pin::ConstraintCholeskyDecomposition> cholesky;
#endif
  Matrix mass, jacobian, joint_jacobian, solved;
  Vector still, bias, free, bias_acceleration;
  Eigen::LLT<Matrix, Eigen::Upper> llt;
  Eigen::Index rows = 0;

  explicit Peer(const char *path) {
    std::ifstream in(path);
    std::size_t joints, count;
    in >> joints;
    for (std::size_t i = 1; i <= joints; ++i) {
      std::string kind;
      pin::JointIndex parent;
      in >> kind >> parent;
      const pin::SE3 place = read_pose(in);
      model.addJoint(parent, joint_of(kind), place, "joint" + std::to_string(i));
      model.appendBodyToJoint(i, read_inertia(in), pin::SE3::Identity());
    }
    for (Eigen::Index i = 0; i < model.nv; ++i)
      in >> model.armature[i];
    in >> count;
    for (std::size_t k = 0; k < count; ++k) {
      pin::JointIndex joint;
      int dimension;
      in >> joint >> dimension;
      const auto type = dimension == 3 ? pin::CONTACT_3D : pin::CONTACT_6D;
      contacts.emplace_back(type, model, joint, read_pose(in));
      contact_data.emplace_back(contacts.back());
      rows += dimension;
    }
    if (!in)
      throw std::runtime_error(std::string("cannot read ") + path);
    data = std::make_unique<pin::Data>(model);
#ifdef PEER_ROUTES
    cholesky = std::make_unique<pin::ConstraintCholeskyDecomposition>(
        model, *data, contacts, contact_data);
    // For computePvDelassusMatrix; the others leave alone what it prepares.
    pin::initPvDelassus(model, *data, contacts);
#endif
    jacobian = Matrix::Zero(rows, model.nv);
    joint_jacobian = Matrix::Zero(6, model.nv);
    solved = Matrix::Zero(model.nv, rows);
    mass = Matrix::Zero(model.nv, model.nv);
    still = bias = free = Vector::Zero(model.nv);
    bias_acceleration = Vector::Zero(rows);
  }
};

// Configuration, rates, and torques or accelerations, side by side in one block.
struct State {
  Eigen::Map<const Vector> q, v, given;
  State(const Peer &p, const double *in)
      : q(in, p.model.nq), v(in + p.model.nq, p.model.nv),
        given(in + p.model.nq + p.model.nv, p.model.nv) {}
};

void write(const Peer &p, double *out, const Vector &values) {
  Eigen::Map<Vector>(out, p.model.nv) = values;
}

// Three matrices one after the other; of symmetric ones the upper triangle is filled.
template <typename First, typename Second, typename Third>
void write(const Peer &p, double *out, const First &first, const Second &second,
           const Third &third) {
  const Eigen::Index n = p.model.nv;
  Eigen::Map<Matrix>(out, n, n) = first;
  Eigen::Map<Matrix>(out + n * n, n, n) = second;
  Eigen::Map<Matrix>(out + 2 * n * n, n, n) = third;
}

Peer &peer_of(double *state) { return *reinterpret_cast<Peer *>(state); }
Eigen::Map<const Vector> q_of(const Peer &p, const double *q) { return {q, p.model.nq}; }
Eigen::Map<Matrix> matrix_of(const Peer &p, double *G) { return {G, p.rows, p.rows}; }

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void *peer_open(const char *path, char *message, int size) {
  try {
    return new Peer(path);
  } catch (const std::exception &error) {
    std::string(error.what()).copy(message, size - 1);
    return nullptr;
  }
}

EXPORTED void peer_close(void *state) { delete static_cast<Peer *>(state); }

#ifdef PEER_EFPA
EXPORTED int32_t peer_efpa(const double *q, double *G, double *state) {
  Peer &p = peer_of(state);
  auto result = matrix_of(p, G);
  pin::computeDelassusMatrix(p.model, *p.data, q_of(p, q), p.contacts, p.contact_data, result);
  return 0;
}
#endif

#ifdef PEER_ROUTES
EXPORTED int32_t peer_pv(const double *q, double *G, double *state) {
  Peer &p = peer_of(state);
  auto result = matrix_of(p, G);
  pin::computePvDelassusMatrix(p.model, *p.data, q_of(p, q), p.contacts, p.contact_data, result,
                               0.0);
  return 0;
}

EXPORTED int32_t peer_cholesky(const double *q, double *G, double *state) {
  Peer &p = peer_of(state);
  pin::crba(p.model, *p.data, q_of(p, q), pin::Convention::WORLD);
  for (std::size_t k = 0; k < p.contacts.size(); ++k)
    p.contacts[k].calc(p.model, *p.data, p.contact_data[k]);
  p.cholesky->compute(p.model, *p.data, p.contacts, p.contact_data, damping);
  auto result = matrix_of(p, G);
  p.cholesky->getInverseOperationalSpaceInertiaMatrix(result);
  return 0;
}
#endif

#if defined(PEER_ROUTES) || defined(PEER_OUTPUTS)
namespace {

// M and J; the convention WORLD leaves the Jacobian of all joints in the data.
template <typename Configuration>
void mass_and_jacobian(Peer &p, const Configuration &q) {
  pin::Data &data = *p.data;
  pin::crba(p.model, data, q, pin::Convention::WORLD);
  Eigen::Index row = 0;
  for (const auto &contact : p.contacts) {
    p.joint_jacobian.setZero();
    pin::getJointJacobian(p.model, data, contact.joint1_id, pin::LOCAL, p.joint_jacobian);
    const int dimension = contact.type == pin::CONTACT_3D ? 3 : 6;
    const pin::SE3::ActionMatrixType toContact = contact.joint1_placement.toActionMatrixInverse();
    p.jacobian.middleRows(row, dimension).noalias() =
        toContact.topRows(dimension) * p.joint_jacobian;
    row += dimension;
  }
}

}  // namespace
#endif

#ifdef PEER_OUTPUTS
namespace {

// G, J, M, h, J'v, a0 and the free accelerations, with M^-1 J^T by the function `solve`, which
// takes what is to be solved for in place. Those besides G and a0 stay in the state.
template <typename Solve>
void everything(Peer &p, const double *in, double *out, const Solve &factorised) {
  const Eigen::Map<const Vector> q(in, p.model.nq), v(in + p.model.nq, p.model.nv);
  const Eigen::Map<const Vector> torques(in + p.model.nq + p.model.nv, p.model.nv);
  pin::Data &data = *p.data;
  mass_and_jacobian(p, q);
  p.bias = pin::nonLinearEffects(p.model, data, q, v);
  pin::forwardKinematics(p.model, data, q, v, p.still);
  Eigen::Index row = 0;
  for (const auto &contact : p.contacts) {
    const int dimension = contact.type == pin::CONTACT_3D ? 3 : 6;
    const pin::Motion a = contact.joint1_placement.actInv(data.a[contact.joint1_id]);
    p.bias_acceleration.segment(row, dimension) = a.toVector().head(dimension);
    row += dimension;
  }
  p.solved = p.jacobian.transpose();
  p.free = torques - p.bias;
  factorised(p.solved, p.free);
  matrix_of(p, out).noalias() = p.jacobian * p.solved;
  Eigen::Map<Vector>(out + p.rows * p.rows, p.rows).noalias() =
      p.jacobian * p.free + p.bias_acceleration;
}

}  // namespace

EXPORTED int32_t peer_all_dense(const double *in, double *out, double *state) {
  Peer &p = peer_of(state);
  everything(p, in, out, [&](Matrix &columns, Vector &column) {
    p.llt.compute(p.data->M);
    p.llt.solveInPlace(columns);
    p.llt.solveInPlace(column);
  });
  return 0;
}

EXPORTED int32_t peer_all_sparse(const double *in, double *out, double *state) {
  Peer &p = peer_of(state);
  everything(p, in, out, [&](Matrix &columns, Vector &column) {
    pin::cholesky::decompose(p.model, *p.data);
    pin::cholesky::solve(p.model, *p.data, columns);
    pin::cholesky::solve(p.model, *p.data, column);
  });
  return 0;
}

#endif

#ifdef PEER_ROUTES
EXPORTED int32_t peer_dense(const double *q, double *G, double *state) {
  Peer &p = peer_of(state);
  mass_and_jacobian(p, q_of(p, q));
  p.llt.compute(p.data->M);
  p.solved = p.jacobian.transpose();
  p.llt.matrixL().solveInPlace(p.solved);
  matrix_of(p, G).noalias() = p.solved.transpose() * p.solved;
  return 0;
}
#endif

#ifdef PEER_DYNAMICS
// Inverse and forward dynamics and their derivatives; in: q, rates, accelerations or torques.

EXPORTED int32_t peer_rnea(const double *in, double *out, double *state) {
  Peer &p = peer_of(state);
  const State x(p, in);
  write(p, out, pin::rnea(p.model, *p.data, x.q, x.v, x.given));
  return 0;
}

EXPORTED int32_t peer_aba(const double *in, double *out, double *state) {
  Peer &p = peer_of(state);
  const State x(p, in);
  write(p, out, pin::aba(p.model, *p.data, x.q, x.v, x.given, pin::Convention::LOCAL));
  return 0;
}

EXPORTED int32_t peer_aba_world(const double *in, double *out, double *state) {
  Peer &p = peer_of(state);
  const State x(p, in);
  write(p, out, pin::aba(p.model, *p.data, x.q, x.v, x.given, pin::Convention::WORLD));
  return 0;
}

EXPORTED int32_t peer_rnea_derivatives(const double *in, double *out, double *state) {
  Peer &p = peer_of(state);
  const State x(p, in);
  pin::Data &data = *p.data;
  pin::computeRNEADerivatives(p.model, data, x.q, x.v, x.given);
  write(p, out, data.dtau_dq, data.dtau_dv, data.M);
  return 0;
}

EXPORTED int32_t peer_aba_derivatives(const double *in, double *out, double *state) {
  Peer &p = peer_of(state);
  const State x(p, in);
  pin::Data &data = *p.data;
  pin::computeABADerivatives(p.model, data, x.q, x.v, x.given);
  write(p, out, data.ddq_dq, data.ddq_dv, data.Minv);
  return 0;
}
#endif
