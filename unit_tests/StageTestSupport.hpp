// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_STAGETESTSUPPORT_HPP
#define KOKKOSOZAKI_STAGETESTSUPPORT_HPP

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "SharedMemory.hpp"
#include "TestMain.hpp"
#include "Vectors.hpp"
#include "impl/KokkosOzaki_KokkosCompat.hpp"
#include "impl/KokkosOzaki_MatrixRef.hpp"
#include "impl/KokkosOzaki_Moduli.hpp"
#include "impl/KokkosOzaki_Workspace.hpp"
#include "stages/host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Testing {

// ---- the forms of a stage
// ----------------------------------------------------------------------------------------

// row_padding: planes have this many rows or a multiple of it in every column, and a form may read and
// overwrite all of them.

/// The form for any execution space.
struct GenericForm {
  static constexpr const char* name = "generic";
  static constexpr std::int64_t row_padding = 1;
  static bool is_usable() { return true; }
  static const Impl::StageKernels* kernels() { return nullptr; }
};

/// Leaf functions in plain C++.
struct PortableForm {
  static constexpr const char* name = "portable";
  static constexpr std::int64_t row_padding = 1;
  static bool is_usable() { return true; }
  static const Impl::StageKernels* kernels() { return Impl::portable_stage_kernels(); }
};

/// Leaf functions for AVX-512.
struct Avx512Form {
  static constexpr const char* name = "avx512";
  static constexpr std::int64_t row_padding = 1;
  static bool is_usable() { return kernels() != nullptr; }
  static const Impl::StageKernels* kernels() { return Impl::avx512_stage_kernels(); }
};

/// The kernels for CUDA, which any pointer but null selects.
struct CudaForm {
  static constexpr const char* name = "cuda";
  static constexpr std::int64_t row_padding = Impl::vector_padding;
  static bool is_usable() { return true; }
  static const Impl::StageKernels* kernels() { return Impl::portable_stage_kernels(); }
};

template <class ExecutionSpace_, class Form_>
struct StageVariant {
  using ExecutionSpace = ExecutionSpace_;
  using Form = Form_;
};

/// Names typed tests after space and form.
struct VariantNames {
  template <class Variant>
  static std::string GetName(int index) {
    return case_name(index, std::string(Variant::ExecutionSpace::name()) + "_" + Variant::Form::name);
  }
};

template <class First, class... Rest>
struct TypesAfterFirst {
  using type = ::testing::Types<Rest...>;
};

#define KOKKOSOZAKI_HOST_VARIANTS(SPACE) \
  , StageVariant<SPACE, GenericForm>, StageVariant<SPACE, PortableForm>, StageVariant<SPACE, Avx512Form>
#define KOKKOSOZAKI_CUDA_VARIANTS(SPACE) , StageVariant<SPACE, GenericForm>, StageVariant<SPACE, CudaForm>
/// Every space with every form that it has.
using StageVariants = typename TypesAfterFirst<void KOKKOSOZAKI_FOR_EACH_HOST_SPACE(KOKKOSOZAKI_HOST_VARIANTS)
                                                   KOKKOSOZAKI_IF_CUDA(KOKKOSOZAKI_CUDA_VARIANTS)>::type;
#undef KOKKOSOZAKI_HOST_VARIANTS
#undef KOKKOSOZAKI_CUDA_VARIANTS

#define KOKKOSOZAKI_SPACE(SPACE) , SPACE
/// Every space, for what has one form only.
using EnabledSpaces = typename TypesAfterFirst<void KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_SPACE)>::type;
#undef KOKKOSOZAKI_SPACE

/// Fixture for a stage in one form on one space; skips where the CPU or the build lacks the form.
template <class Variant>
class StageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Variant::Form::is_usable()) GTEST_SKIP() << "no " << Variant::Form::name << " leaf functions here";
  }

  static constexpr std::int64_t row_padding = Variant::Form::row_padding;

  const Impl::StageKernels* kernels = Variant::Form::kernels();
  typename Variant::ExecutionSpace exec;
};

// ---- data
// ----------------------------------------------------------------------------------------------------------

/// The number with these parts.
template <class Element>
Element make(double re, double im = 0.0) {
  using Real = Impl::RealOf<Element>;
  if constexpr (Impl::is_complex_v<Element>)
    return Element(static_cast<Real>(re), static_cast<Real>(im));
  else
    return static_cast<Element>(re);
}

/// SplitMix64, from the seed of the run and a number of its own for each test.
class Random {
 public:
  explicit Random(std::uint64_t stream) : m_state(test_seed() + (stream << 40)) {}

  std::uint64_t bits() {
    std::uint64_t z = m_state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 .. bound-1
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(bound));
  }
  /// first .. last
  std::int64_t between(std::int64_t first, std::int64_t last) { return first + below(last - first + 1); }
  /// Random sign and significand, exponent first .. last; rounded where that is subnormal.
  double real(int first, int last) {
    const double significand = 1.0 + std::ldexp(static_cast<double>(bits() >> 12), -52);
    const double x = std::ldexp(significand, static_cast<int>(between(first, last)));
    return (bits() & 1) != 0 ? -x : x;
  }
  std::int8_t int8() { return static_cast<std::int8_t>(bits() & 0xFF); }
  std::int32_t int32() { return static_cast<std::int32_t>(bits() & 0xFFFFFFFF); }

 private:
  std::uint64_t m_state;
};

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Equal bits, or NaN both.
inline bool same_value(double x, double y) {
  return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof(x)) == 0;
}

inline ::testing::AssertionResult equal_values(double expected, double got) {
  if (same_value(expected, got)) return ::testing::AssertionSuccess();
  char text[96];
  std::snprintf(text, sizeof(text), "expected %a (%.17g), got %a (%.17g)", expected, expected, got, got);
  return ::testing::AssertionFailure() << text;
}

/// Memory on a 64-byte boundary, every element set to `fill`.
template <class T>
Kokkos::View<T*, SharedSpace> buffer(std::int64_t size, T fill) {
  Kokkos::View<T*, SharedSpace> memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("buffer")),
                                       static_cast<std::size_t>(size));
  std::fill_n(memory.data(), size, fill);
  return memory;
}

/// How vectors lie in memory, as strides that depend on their number and length.
struct Placement {
  const char* name;
  std::int64_t vector_stride, position_stride;
  std::int64_t offset = 0;  // entries before the first vector
};

/// Positions contiguous or not, with and without gaps; vectors that start on 16-byte boundaries at every position, or at
/// none.
inline std::vector<Placement> placements(std::int64_t count, std::int64_t length) {
  return {{"contiguous positions", length, 1},
          {"contiguous positions, gaps", length + 3, 1},
          {"contiguous vectors", 1, count},
          {"contiguous vectors, gaps", 1, count + 5},
          {"contiguous vectors, strides of whole words", 1, (count + 3) / 4 * 4, count % 4 == 3 ? 1 : 0},
          {"nothing contiguous", 2, 2 * count + 1}};
}

/// \brief Numbers of vectors and lengths: all of `counts` with all of `lengths`, and some with several chunks, where
/// the tiles of CUDA begin with one vector and go on with another chunk.
inline std::vector<std::pair<std::int64_t, std::int64_t>> shapes_around_tiles(
    const std::vector<std::int64_t>& counts, const std::vector<std::int64_t>& lengths) {
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {{3, 300},  {4, 513},   {36, 270},
                                                               {97, 140}, {100, 257}, {130, 140}};
  for (const std::int64_t length : lengths)
    for (const std::int64_t count : counts) shapes.emplace_back(count, length);
  return shapes;
}

/// Copies of `rows` in one piece of memory that is as small as the strides allow, NaN in the gaps.
template <class Element>
class PlacedVectorsOf {
 public:
  PlacedVectorsOf(const std::vector<std::vector<Element>>& rows, const Placement& placement,
                  bool conj = false)
      : m_set{nullptr,
              static_cast<std::int64_t>(rows.size()),
              static_cast<std::int64_t>(rows.front().size()),
              placement.vector_stride,
              placement.position_stride,
              conj} {
    const std::int64_t last =
        (m_set.count - 1) * m_set.vector_stride + (m_set.length - 1) * m_set.position_stride;
    m_memory.assign(static_cast<std::size_t>(placement.offset + last + 1),
                    Element(static_cast<Impl::RealOf<Element>>(quiet_nan)));
    m_set.data = m_memory.data() + placement.offset;
    for (std::int64_t v = 0; v < m_set.count; ++v)
      for (std::int64_t l = 0; l < m_set.length; ++l)
        m_memory[static_cast<std::size_t>(placement.offset + v * m_set.vector_stride +
                                          l * m_set.position_stride)] =
            rows[static_cast<std::size_t>(v)][static_cast<std::size_t>(l)];
  }
  PlacedVectorsOf(const PlacedVectorsOf&) = delete;
  PlacedVectorsOf& operator=(const PlacedVectorsOf&) = delete;

  const Impl::VectorSet<Element>& set() const { return m_set; }

  /// The positions first .. first + length - 1.
  Impl::VectorSet<Element> positions(std::int64_t first, std::int64_t length) const {
    Impl::VectorSet<Element> part = m_set;
    part.data += first * part.position_stride;
    part.length = length;
    return part;
  }

 private:
  std::vector<Element> m_memory;
  Impl::VectorSet<Element> m_set;
};
using PlacedVectors = PlacedVectorsOf<double>;

template <class T>
std::int64_t size_of(const std::vector<T>& x) {
  return static_cast<std::int64_t>(x.size());
}

/// x[i] with a signed index.
template <class T>
const T& at(const std::vector<T>& x, std::int64_t i) {
  return x[static_cast<std::size_t>(i)];
}
template <class T>
T& at(std::vector<T>& x, std::int64_t i) {
  return x[static_cast<std::size_t>(i)];
}
template <class T>
const T& at(const std::vector<std::vector<T>>& x, std::int64_t i, std::int64_t j) {
  return x[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
}

/// e of every vector as the statistics stage stores it.
inline std::vector<std::int32_t> stored_exponents(const std::vector<VectorStatistics>& statistics) {
  std::vector<std::int32_t> result;
  for (const VectorStatistics& s : statistics)
    result.push_back(s.kind == VectorStatistics::Kind::regular ? s.exponent
                     : s.kind == VectorStatistics::Kind::zero  ? Impl::zero_vector
                                                               : Impl::flagged_vector);
  return result;
}

/// The constants of this many moduli; a copy on the heap, which kernels can read.
inline const Impl::ModuliTable& table_of(int num_moduli) {
  static const std::vector<Impl::ModuliTable> tables(
      Impl::moduli_tables(), Impl::moduli_tables() + (Impl::max_moduli - Impl::min_moduli + 1));
  return tables[static_cast<std::size_t>(num_moduli - Impl::min_moduli)];
}

}  // namespace KokkosOzaki::Testing

#endif
