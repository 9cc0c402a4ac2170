// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "impl/KokkosOzaki_Checks.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "impl/KokkosOzaki_Moduli.hpp"

namespace KokkosOzaki::Impl {

namespace {

template <class... Parts>
[[noreturn]] void fail(const char* function, const Parts&... parts) {
  std::ostringstream message;
  message << "KokkosOzaki::" << function << ": ";
  (message << ... << parts) << '.';
  throw std::invalid_argument(message.str());
}

void check_trans(const char* function, const char* name, char trans) {
  if (trans == '\0' || std::strchr("NnTtCc", trans) == nullptr) {
    std::ostringstream got;
    const auto code = static_cast<unsigned char>(trans);
    if (code >= 32 && code < 127)
      got << "'" << trans << "'";
    else
      got << "character code " << static_cast<int>(code);
    fail(function, name, " must be one of N, T, C, got ", got.str());
  }
}

void check_strides(const char* function, const char* name, const OperandShape& x) {
  if (x.rows == 0 || x.cols == 0) return;
  const bool rows_matter = x.rows > 1, cols_matter = x.cols > 1;
  bool distinct = (!rows_matter || x.row_stride > 0) && (!cols_matter || x.col_stride > 0);
  if (distinct && rows_matter && cols_matter)
    distinct = x.row_stride <= x.col_stride ? (x.rows - 1) * x.row_stride < x.col_stride
                                            : (x.cols - 1) * x.col_stride < x.row_stride;
  if (!distinct)
    fail(function, name, " must not store two entries in one place, got ", x.rows, "x", x.cols,
         " with strides ", x.row_stride, " and ", x.col_stride);
}

std::int64_t last_offset(const OperandShape& x) {
  return (x.rows - 1) * x.row_stride + (x.cols - 1) * x.col_stride;
}

/// Extents of a matrix along the two strides of a grid; a single row or column has no stride of its own
/// across.
struct Panel {
  std::int64_t minor = 1, major = 1;

  void extend(std::int64_t extent, std::int64_t stride, std::int64_t step) {
    if (extent > 1) (stride == step ? minor : major) = extent;
  }
};

/// Whether two operands provably share an entry. Where the strides differ and only a search could tell, the
/// answer is no.
bool overlap(const OperandShape& x, const OperandShape& y) {
  const auto x_first = reinterpret_cast<std::uintptr_t>(x.data),
             y_first = reinterpret_cast<std::uintptr_t>(y.data);
  if (y_first < x_first) return overlap(y, x);
  const std::uintptr_t x_end = x_first + static_cast<std::uintptr_t>((last_offset(x) + 1) * x.element_bytes);
  if (x_end <= y_first) return false;
  if (x.element_bytes != y.element_bytes) return true;  // not parts of one matrix
  const auto bytes = static_cast<std::int64_t>(y_first - x_first);
  if (bytes == 0 || bytes % x.element_bytes != 0) return true;

  // The strides that matter, at most two different ones for a common grid of rows `step` apart and columns
  // `ld` apart.
  std::vector<std::int64_t> strides;
  const auto add = [&strides](std::int64_t extent, std::int64_t stride) {
    if (extent > 1 && std::find(strides.begin(), strides.end(), stride) == strides.end())
      strides.push_back(stride);
  };
  add(x.rows, x.row_stride), add(x.cols, x.col_stride), add(y.rows, y.row_stride), add(y.cols, y.col_stride);
  std::sort(strides.begin(), strides.end());
  if (strides.size() > 2) return false;
  const std::int64_t step = strides.empty() ? 1 : strides[0];
  const std::int64_t ld = strides.size() < 2 ? std::numeric_limits<std::int64_t>::max() : strides[1];
  Panel px, py;
  px.extend(x.rows, x.row_stride, step), px.extend(x.cols, x.col_stride, step);
  py.extend(y.rows, y.row_stride, step), py.extend(y.cols, y.col_stride, step);

  // y starts dj columns and di rows after x. A y that crosses the end of x's columns shows up one column
  // later as well.
  const std::int64_t distance = bytes / x.element_bytes;
  for (std::int64_t wrap = 0; wrap < 2; ++wrap) {
    const std::int64_t dj = distance / ld + wrap, offset = distance - dj * ld;
    if (offset % step != 0) continue;
    const std::int64_t di = offset / step;
    if (di < px.minor && di + py.minor > 0 && dj < px.major) return true;
  }
  return false;
}

/// Where the entries of a batch begin.
std::vector<std::uintptr_t> begins_of(const OperandShape& x) {
  std::vector<std::uintptr_t> begins(static_cast<std::size_t>(x.entries));
  for (std::int64_t e = 0; e < x.entries; ++e)
    begins[static_cast<std::size_t>(e)] = reinterpret_cast<std::uintptr_t>(x.entry(e));
  return begins;
}

/// The matrix of x that begins at an address.
OperandShape matrix_at(OperandShape x, std::uintptr_t begin) {
  x.data = reinterpret_cast<const void*>(begin);
  return x;
}

std::uintptr_t bytes_of(const OperandShape& x) {
  return static_cast<std::uintptr_t>((last_offset(x) + 1) * x.element_bytes);
}

/// \brief Whether a matrix of C provably shares an entry with another matrix of C, or with one of x, if there is
/// an x. Where many matrices lie within each other without sharing entries, as the row panels of one matrix
/// do, not all pairs are looked at.
bool any_overlap(const OperandShape& C, const OperandShape* x) {
  struct Place {
    std::uintptr_t begin, end;
    const OperandShape* shape;
  };
  std::vector<Place> places;
  const auto add = [&places](const OperandShape& operand) {
    const std::uintptr_t bytes = bytes_of(operand);
    for (const std::uintptr_t begin : begins_of(operand)) places.push_back({begin, begin + bytes, &operand});
  };
  add(C);
  if (x != nullptr) {
    const auto before = [](const Place& p, const Place& q) { return p.begin < q.begin; };
    const auto [c_first, c_last] = std::minmax_element(places.begin(), places.end(), before);
    const std::uintptr_t c_begin = c_first->begin, c_end = c_last->end;
    std::vector<std::uintptr_t> begins = begins_of(*x);
    const auto [first, last] = std::minmax_element(begins.begin(), begins.end());
    if (*last + bytes_of(*x) <= c_begin || c_end <= *first) return false;
    std::sort(begins.begin(), begins.end());  // one matrix may be in all entries
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    for (const std::uintptr_t begin : begins) places.push_back({begin, begin + bytes_of(*x), x});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& p, const Place& q) { return p.begin < q.begin; });
  std::size_t looks = 64 * places.size() + 4096;
  for (auto p = places.begin(); p != places.end(); ++p)
    for (auto q = p + 1; q != places.end() && q->begin < p->end; ++q) {
      if (looks-- == 0) return false;
      if (x != nullptr && p->shape == q->shape) continue;
      if (overlap(matrix_at(*p->shape, p->begin), matrix_at(*q->shape, q->begin))) return true;
    }
  return false;
}

/// Whether the entries of a batch with strides are apart, one within the gaps of the other if need be.
bool entries_are_apart(const OperandShape& x) {
  std::pair<std::int64_t, std::int64_t> dimensions[] = {
      {x.row_stride, x.rows}, {x.col_stride, x.cols}, {x.entry_stride, x.entries}};
  std::sort(std::begin(dimensions), std::end(dimensions));
  std::int64_t reach = 0;
  for (const auto& [stride, extent] : dimensions) {
    if (extent <= 1) continue;
    if (stride <= reach) return false;
    reach += (extent - 1) * stride;
  }
  return true;
}

std::string sizes(const char* name, const OperandShape& x) {
  return std::string(name) + " " + std::to_string(x.rows) + "x" + std::to_string(x.cols);
}

void check_memory(const char* function, const OperandShape& A, const OperandShape& B, const OperandShape& C) {
  check_strides(function, "A", A);
  check_strides(function, "B", B);
  check_strides(function, "C", C);
  if (C.rows == 0 || C.cols == 0) return;
  const std::pair<const char*, const OperandShape*> operands[] = {{"A", &A}, {"B", &B}};
  for (const auto& [name, x] : operands)
    if (x->rows > 0 && x->cols > 0 && overlap(*x, C))
      fail(function, "C must not overlap ", name, " (", sizes(name, *x), ", ", sizes("C", C), ")");
}

void check_batch_memory(const char* function, const OperandShape& A, const OperandShape& B,
                        const OperandShape& C) {
  check_strides(function, "A", A);
  check_strides(function, "B", B);
  check_strides(function, "C", C);
  if (C.rows == 0 || C.cols == 0) return;
  if (C.pointers == nullptr ? !entries_are_apart(C) : any_overlap(C, nullptr))
    fail(function, "the matrices of C must not overlap each other (", C.entries, " of ", C.rows, "x", C.cols,
         ")");
  const std::pair<const char*, const OperandShape*> operands[] = {{"A", &A}, {"B", &B}};
  for (const auto& [name, x] : operands)
    if (x->rows > 0 && x->cols > 0 && any_overlap(C, x))
      fail(function, "C must not overlap ", name, " (", sizes(name, *x), ", ", sizes("C", C), ", ", C.entries,
           " of each)");
}

/// S <= 2^32 parts k must fit 64 bits (method.md, "Statistics"), and so must every byte count of a workspace. No
/// memory holds more.
void check_sizes(const char* function, ScalarShape scalar, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t most_vectors = std::int64_t{1} << 48, most_entries = std::int64_t{1} << 56;
  const std::int64_t longest = std::max(m, n);
  const int k_bits = scalar.parts == 1 ? 32 : 31;
  if (k >> k_bits != 0 || longest > most_vectors || (m > 0 && n > most_entries / m) ||
      (k > 0 && longest > most_entries / k))
    fail(function, "sizes are too large (k must be below 2^", k_bits,
         ", a matrix below 2^56 entries), got m=", m, ", n=", n, ", k=", k);
}

void check_options(const char* function, const GemmOptions& options) {
  if (options.num_moduli != 0 && (options.num_moduli < min_moduli || options.num_moduli > max_moduli))
    fail(function, "num_moduli must be 0 or ", min_moduli, "..", max_moduli, ", got ", options.num_moduli);
  if (options.accuracy.is_componentwise() && !options.accuracy.is_default() &&
      !(options.accuracy.constant() >= 1))
    fail(function, "the constant of a componentwise accuracy must be at least 1, got ",
         options.accuracy.constant());
  if (!options.accuracy.is_default() && !(options.accuracy.constant() > 0))
    fail(function, "the constant of accuracy must be positive, got ", options.accuracy.constant());
  if (options.moduli_per_group < 0)
    fail(function, "moduli_per_group must not be negative, got ", options.moduli_per_group);
  if (options.method != Method::emulated && options.method != Method::native &&
      options.method != Method::automatic)
    fail(function, "method must be emulated, native or automatic, got the number ",
         static_cast<int>(options.method));
  if (options.fallback != Fallback::exact && options.fallback != Fallback::vendor)
    fail(function, "fallback must be exact or vendor, got the number ", static_cast<int>(options.fallback));
}

/// A native product cannot keep every promise.
void check_fallback(const char* function, ScalarShape scalar, std::int64_t k, const GemmOptions& options) {
  if (options.fallback == Fallback::vendor && chooses_from_data(options) && !native_keeps(scalar, k, options))
    fail(function, "Fallback::vendor keeps a componentwise accuracy of c=", scalar.parts == 1 ? "k" : "2k",
         " or more, got c=", options.accuracy.constant(), " with k=", k);
}

/// Rows and columns of op(x).
std::pair<std::int64_t, std::int64_t> extents_of_op(const OperandShape& x, char trans) {
  return is_transposed(trans) ? std::make_pair(x.cols, x.rows) : std::make_pair(x.rows, x.cols);
}

/// The extents of the matrices, which may be those of all entries of a batch.
void check_extents(const char* function, ScalarShape scalar, char transA, char transB, const OperandShape& A,
                   const OperandShape& B, const OperandShape& C) {
  const auto [m, k] = extents_of_op(A, transA);
  const auto [b_rows, n] = extents_of_op(B, transB);
  std::ostringstream shapes;
  shapes << " (transA=" << transA << ' ' << sizes("A", A) << ", transB=" << transB << ' ' << sizes("B", B)
         << ", " << sizes("C", C) << ")";
  if (b_rows != k) fail(function, "op(B) has ", b_rows, " rows, op(A) has ", k, " columns", shapes.str());
  if (C.rows != m) fail(function, "C has ", C.rows, " rows, op(A) has ", m, " rows", shapes.str());
  if (C.cols != n) fail(function, "C has ", C.cols, " columns, op(B) has ", n, " columns", shapes.str());
  check_sizes(function, scalar, m, n, k);
}

}  // namespace

void check_gemm(const char* function, ScalarShape scalar, char transA, char transB, const OperandShape& A,
                const OperandShape& B, const OperandShape& C, const GemmOptions& options) {
  check_trans(function, "transA", transA);
  check_trans(function, "transB", transB);
  check_extents(function, scalar, transA, transB, A, B, C);
  check_memory(function, A, B, C);
  check_options(function, options);
  check_fallback(function, scalar, extents_of_op(A, transA).second, options);
}

void check_gemm_batched(const char* function, ScalarShape scalar, char transA, char transB,
                        const OperandShape& A, const OperandShape& B, const OperandShape& C,
                        const GemmOptions& options) {
  check_trans(function, "transA", transA);
  check_trans(function, "transB", transB);
  if (A.entries != C.entries || B.entries != C.entries)
    fail(function, "A, B and C must have the same number of matrices, got ", A.entries, ", ", B.entries,
         " and ", C.entries);
  if (C.entries != 0) {
    check_extents(function, scalar, transA, transB, A, B, C);
    check_batch_memory(function, A, B, C);
  }
  check_options(function, options);
  if (C.entries != 0) check_fallback(function, scalar, extents_of_op(A, transA).second, options);
}

void check_same_shape(const char* function, const char* name, std::int64_t index, const OperandShape& first,
                      const OperandShape& got) {
  if (first.rows == got.rows && first.cols == got.cols && first.row_stride == got.row_stride &&
      first.col_stride == got.col_stride)
    return;
  const auto describe = [](const OperandShape& x) {
    std::ostringstream text;
    text << x.rows << 'x' << x.cols << " with strides " << x.row_stride << " and " << x.col_stride;
    return text.str();
  };
  fail(function, name, "[", index, "] must be as ", name, "[0], ", describe(first), ", got ", describe(got));
}

void check_plan(const char* function, ScalarShape scalar, char transA, char transB, std::int64_t m,
                std::int64_t n, std::int64_t k, const GemmOptions& options) {
  check_trans(function, "transA", transA);
  check_trans(function, "transB", transB);
  if (m < 0 || n < 0 || k < 0) fail(function, "sizes must not be negative, got m=", m, ", n=", n, ", k=", k);
  check_sizes(function, scalar, m, n, k);
  check_options(function, options);
  check_fallback(function, scalar, k, options);
}

void check_execute(char transA, char transB, std::int64_t m, std::int64_t n, std::int64_t k,
                   const OperandShape& A, const OperandShape& B, const OperandShape& C) {
  const char* function = "GemmPlan::execute";
  const auto expect = [&](const char* name, std::int64_t rows, std::int64_t cols, std::int64_t got_rows,
                          std::int64_t got_cols) {
    if (rows != got_rows || cols != got_cols)
      fail(function, name, " must be ", rows, "x", cols, " as planned (transA=", transA, ", transB=", transB,
           ", m=", m, ", n=", n, ", k=", k, "), got ", got_rows, "x", got_cols);
  };
  expect("A", is_transposed(transA) ? k : m, is_transposed(transA) ? m : k, A.rows, A.cols);
  expect("B", is_transposed(transB) ? n : k, is_transposed(transB) ? k : n, B.rows, B.cols);
  expect("C", m, n, C.rows, C.cols);
  check_memory(function, A, B, C);
}

char canonical_trans(ScalarShape scalar, char trans) {
  if (!is_transposed(trans)) return 'N';
  return scalar.parts == 2 && (trans == 'C' || trans == 'c') ? 'C' : 'T';
}

void check_prepare(const char* function, ScalarShape scalar, char operand, char trans, const OperandShape& x,
                   const GemmOptions& options) {
  const char name[] = {operand, '\0'};
  check_trans(function, operand == 'A' ? "transA" : "transB", trans);
  const auto [rows, cols] = extents_of_op(x, trans);
  if (operand == 'A')
    check_sizes(function, scalar, rows, 1, cols);
  else
    check_sizes(function, scalar, 1, cols, rows);
  check_strides(function, name, x);
  check_options(function, options);
}

void check_prepared(const PreparedTraits& planned, const PreparedTraits& got, bool is_there,
                    bool moduli_matter) {
  const char* function = "GemmPlan::execute";
  const char name = planned.operand;
  const auto maker = [](char operand) { return operand == 'A' ? "prepare_a" : "prepare_b"; };
  const auto name_of = [](Bound bound) { return bound == Bound::fast ? "fast" : "accurate"; };
  const auto name_of_rounding = [](Rounding rounding) {
    return rounding == Rounding::nearest_even ? "nearest_even" : "toward_zero";
  };
  if (!is_there) fail(function, name, " must not be a PreparedMatrix that was moved from");
  if (got.operand != name)
    fail(function, name, " must be prepared by ", maker(name), ", got one by ", maker(got.operand));
  if (got.trans != planned.trans)
    fail(function, name, " must be prepared with trans", name, "=", planned.trans, " as planned, got trans",
         name, "=", got.trans);
  if (got.rows != planned.rows || got.cols != planned.cols)
    fail(function, "op(", name, ") must be ", planned.rows, "x", planned.cols, " as planned, got a prepared ",
         got.rows, "x", got.cols);
  const auto number_of = [](int num_moduli) {
    return num_moduli != 0 ? std::to_string(num_moduli) : std::string("a number chosen from the data");
  };
  if (moduli_matter && got.num_moduli != planned.num_moduli)
    fail(function, name, " must be prepared with ", number_of(planned.num_moduli), " moduli as planned, got ",
         number_of(got.num_moduli));
  if (got.bound != planned.bound)
    fail(function, name, " must be prepared for the bound ", name_of(planned.bound), " as planned, got ",
         name_of(got.bound));
  if (got.rounding != planned.rounding)
    fail(function, name, " must be prepared with rounding ", name_of_rounding(planned.rounding),
         " as planned, got ", name_of_rounding(got.rounding));
}

std::string moduli_complaint(ScalarShape scalar, std::int64_t k, const GemmOptions& options) {
  if (k == 0) return {};
  const std::int64_t terms = scalar.parts * k;
  std::ostringstream why;
  if (options.num_moduli != 0) {
    if (guard_fast(options.num_moduli, terms) >= 2) return {};
    int enough = options.num_moduli;
    while (enough <= max_moduli && guard_fast(enough, terms) < 2) ++enough;
    why << "too few moduli for this k: num_moduli=" << options.num_moduli << ", k=" << k << " needs at least "
        << enough;
    return why.str();
  }
  if (options.accuracy.is_componentwise()) return {};
  if (select_normwise(terms, options.accuracy, options.rounding, scalar.precision) != 0) return {};
  why << "the accuracy asked for (normwise, c=";
  if (options.accuracy.is_default())
    why << (scalar.parts == 1 ? "sqrt(k)" : "sqrt(2k)");
  else
    why << options.accuracy.constant();
  why << ") needs more than " << max_moduli << " moduli for k=" << k;
  return why.str();
}

int resolve_num_moduli(const char* function, ScalarShape scalar, std::int64_t k, const GemmOptions& options) {
  const std::string complaint = moduli_complaint(scalar, k, options);
  if (!complaint.empty()) fail(function, complaint);
  if (options.num_moduli != 0) return options.num_moduli;
  return k == 0 ? min_moduli
                : select_normwise(scalar.parts * k, options.accuracy, options.rounding, scalar.precision);
}

}  // namespace KokkosOzaki::Impl
