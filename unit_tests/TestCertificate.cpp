// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_Certify.hpp"

#include <gtest/gtest.h>

#include <KokkosOzaki.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "KokkosOzaki_Backends.hpp"
#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"
#include "impl/KokkosOzaki_Planes.hpp"
#include "stages/KokkosOzaki_Multiply.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::CertificateRecord;
using Impl::CertificateVector;
using nlohmann::json;

// ---- the arithmetic ---------------------------------------------------------------------------------

TEST(Certificate, BitsAreTheSmallestExponent) {
  Random random(200);
  const auto number = [&](int most_bits) {
    const std::uint64_t x = random.bits() >> (64 - random.between(1, most_bits));
    return x != 0 ? x : 1;
  };
  const auto holds = [](std::uint64_t n, std::uint64_t g, int t) {
    return t >= 0 ? mpz_class(n) <= mpz_class(g) * power_of_two(t)
                  : mpz_class(n) * power_of_two(-t) <= mpz_class(g);
  };
  for (int trial = 0; trial < 20000; ++trial) {
    const std::uint64_t n = number(60);
    const std::uint64_t g = random.below(4) == 0 ? n << random.below(3) : number(63);
    const int t = Impl::certificate_bits(n, g);
    ASSERT_TRUE(holds(n, g, t)) << n << ' ' << g;
    ASSERT_FALSE(holds(n, g, t - 1)) << n << ' ' << g;
  }
}

TEST(Certificate, VectorsAreBoundedByTheirNorms) {
  Random random(201);
  for (int trial = 0; trial < 20000; ++trial) {
    const std::uint64_t square_sum =
        trial == 0 ? ~std::uint64_t{0} : std::max(random.bits() >> random.below(34), std::uint64_t{1} << 30);
    const std::uint64_t sum = std::max(random.bits() >> random.between(15, 48), std::uint64_t{1} << 15);
    const CertificateVector v = CertificateVector::of(square_sum, sum);
    EXPECT_EQ(mpz_class(v.norm_1), (mpz_class(sum) + 127) / 128 + 1);
    // 2^(2 (a + 15)) >= S, and a - 1 would not do.
    ASSERT_GT(power_of_two(2 * (v.norm_2 + 15)), mpz_class(square_sum));
    ASSERT_LE(power_of_two(2 * (v.norm_2 + 14)) / 2, mpz_class(square_sum));
    // root 2^12 > sqrt(S), and root - 1 would not do.
    const mpz_class root = mpz_class(v.root) << 12;
    ASSERT_GT(root * root, mpz_class(square_sum));
    const mpz_class less = mpz_class(v.root - 1) << 12;
    ASSERT_LE(less * less, mpz_class(square_sum));
  }
}

TEST(Certificate, TwentyModuliAreEnoughForEverySecondOrderTerm) {
  for (const int precision : {53, 24})
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{131008}, (std::int64_t{1} << 32) - 1}) {
      const Impl::CertificateRule rule{k, precision, true};
      EXPECT_EQ(rule.half_bits(Impl::max_moduli), 77);
      EXPECT_GE(77, rule.table().second_order_bits(17, 17));
      EXPECT_EQ(rule.table().moduli_for(rule.most_bits(), 17, 17), Impl::max_moduli);
      EXPECT_EQ(rule.table().moduli_for(rule.most_bits() + 1, 17, 17), 0);
    }
}

// ---- the stages, against the specification's cases --------------------------------------------------

template <class Element>
Element element_of(const json& value) {
  using Real = Impl::RealOf<Element>;
  const auto number = [](const json& text) {
    return static_cast<Real>(std::strtod(text.get<std::string>().c_str(), nullptr));
  };
  if constexpr (Impl::is_complex_v<Element>)
    return Element(number(value.at(0)), number(value.at(1)));
  else
    return number(value);
}

/// Vectors one after the other.
template <class Element>
struct Operand {
  std::vector<Element> data;
  Impl::VectorSet<Element> vectors;

  explicit Operand(const json& rows) {
    for (const json& row : rows)
      for (const json& value : row) data.push_back(element_of<Element>(value));
    const auto count = static_cast<std::int64_t>(rows.size()),
               length = static_cast<std::int64_t>(rows.at(0).size());
    vectors = {data.data(), count, length, length, 1};
  }
};

template <class Variant>
class CertifyStage : public StageTest<Variant> {
 protected:
  using Space = typename Variant::ExecutionSpace;

  /// \param fine  with the second lower bound
  template <class Element>
  CertificateRecord run(const Operand<Element>& A, const Operand<Element>& B, std::int64_t c,
                        std::int64_t positions, bool fine, const Impl::CertificateRule& rule,
                        std::vector<std::int64_t>* open = nullptr) {
    const auto& [a, b] = std::tie(A.vectors, B.vectors);
    const auto vectors = static_cast<std::size_t>(a.count + b.count);
    std::vector<Impl::ChunkStatistics> chunks(vectors * static_cast<std::size_t>(Impl::chunks_of(a.length)));
    std::vector<std::int32_t> exponent(vectors);
    std::vector<std::uint64_t> square_sum(vectors), sum(vectors);
    std::vector<CertificateVector> of_vectors(vectors);
    const auto control = std::make_unique<Impl::Control>();
    const auto record = std::make_unique<CertificateRecord>();
    Impl::reset_control(this->exec, control.get());
    Impl::statistics(this->exec, this->kernels, a, b, chunks.data(), exponent.data(), square_sum.data(),
                     control.get(), sum.data());
    Impl::certificate_vectors(this->exec, a.count, b.count, exponent.data(), square_sum.data(), sum.data(),
                              of_vectors.data(), record.get());
    const auto engine = Impl::make_int8_gemm<Space>(nullptr);
    engine->prepare();
    std::vector<std::vector<std::int32_t>> products;
    const auto product = [&](std::int64_t length, const auto& quantizer) {
      const Impl::PlaneGeometry g = Impl::block_geometry(a.count, b.count, length, 1);
      using Plane = Kokkos::View<std::int8_t*, SharedSpace>;
      const Plane qA("qA", static_cast<std::size_t>(g.stride_a)),
          qB("qB", static_cast<std::size_t>(g.stride_b));
      const Kokkos::View<std::int32_t*, SharedSpace> P("P", static_cast<std::size_t>(g.stride_p));
      const Kokkos::View<char*, typename Space::memory_space> workspace("workspace",
                                                                        engine->workspace_bytes(g));
      Impl::quantize(this->exec, this->kernels, Impl::part(a, 0, a.count, 0, length), exponent.data(),
                     qA.data(), g.lda, g.stride_a / g.lda, quantizer);
      Impl::quantize(this->exec, this->kernels, Impl::part(b, 0, b.count, 0, length),
                     exponent.data() + a.count, qB.data(), g.ldb, g.stride_b / g.ldb, quantizer);
      Impl::multiply(this->exec, *engine, g, qA.data(), qB.data(), P.data(), false, workspace.data());
      this->exec.fence();
      products.emplace_back(P.data(), P.data() + g.stride_p);
    };
    product(std::min(positions, a.length), Impl::QuantizeDown{2});
    product(std::min(positions, a.length), Impl::QuantizeDown{8});
    product(a.length, Impl::QuantizeSupport{});
    std::vector<std::int64_t> list(static_cast<std::size_t>(a.count * b.count), -1);
    Impl::reset_certificate(this->exec, record.get());
    Impl::certify(this->exec,
                  Impl::CertifyBlock{a.count, b.count, Impl::round_up(a.count, Impl::vector_padding),
                                     products[0].data(), fine ? products[1].data() : nullptr,
                                     open != nullptr ? products[2].data() : nullptr, of_vectors.data(),
                                     of_vectors.data() + a.count, static_cast<std::uint64_t>(c),
                                     rule.most_bits(), Impl::parts_of_v<Element>},
                  Impl::OpenEntries{open != nullptr ? list.data() : nullptr,
                                    static_cast<std::int64_t>(list.size()), 0, 0, a.count},
                  record.get());
    this->exec.fence();
    if (open != nullptr) open->assign(list.begin(), list.begin() + record->open);
    return *record;
  }

  /// The selection of section 10.2: the first lower bound, then both.
  template <class Element>
  void expect(const json& in, std::int64_t c, std::int64_t positions, bool toward_zero, const json& coarse,
              const json& both, const json& s, std::optional<int> second_order = {}) {
    const Operand<Element> a(in.at("opA_rows")), b(in.at("opB_cols"));
    const Impl::CertificateRule rule{Impl::parts_of_v<Element> * a.vectors.length,
                                     std::is_same_v<Impl::RealOf<Element>, float> ? 24 : 53, toward_zero};
    int selected = 0;
    for (const bool fine : {false, true}) {
      const CertificateRecord got = run(a, b, c, positions, fine, rule);
      const json& need = fine ? both : coarse;
      ASSERT_EQ(got.open != 0, need.is_null());
      if (!need.is_null()) {
        const int bits =
            got.bits == CertificateRecord::none ? CertificateRecord::none : rule.needed_bits(got.bits);
        ASSERT_EQ(bits, need.get<int>());
        ASSERT_LE(got.least_bits, got.bits);
      }
      const int q = rule.table().second_order_bits(got.row_norm_2, got.col_norm_2);
      if (second_order.has_value()) {
        ASSERT_EQ(q, *second_order);
      }
      if (selected == 0 && got.open == 0)
        selected = rule.table().moduli_for(got.bits, got.row_norm_2, got.col_norm_2);
    }
    ASSERT_EQ(selected, s.is_null() ? 0 : s.get<int>());
  }
};
TYPED_TEST_SUITE(CertifyStage, StageVariants, VariantNames);

TYPED_TEST(CertifyStage, SelectsWhatTheSpecificationSelects) {
  int cases = 0;
  for (const json& in : read_vectors_file("selection")) {
    SCOPED_TRACE(in.dump().substr(0, 200));
    if (in.at("kind") == "componentwise") {
      for (const auto& [c, s] : in.at("s").items()) {
        ++cases;
        ASSERT_NO_FATAL_FAILURE(this->template expect<double>(in, std::stol(c), Impl::max_k_block, false,
                                                              in.at("need_level2_c" + c),
                                                              in.at("need_level28_c" + c), s));
      }
    } else if (in.at("kind") == "certificate") {
      ++cases;
      const auto with = [&](auto element) {
        this->template expect<decltype(element)>(in, in.at("c"), in.at("positions"), in.at("toward_zero"),
                                                 in.at("need_level2"), in.at("need_level28"), in.at("s"),
                                                 in.at("Q").template get<int>());
      };
      const std::string type = in.at("type");
      if (type == "f64") {
        ASSERT_NO_FATAL_FAILURE(with(double{}));
      }
      if (type == "f32") {
        ASSERT_NO_FATAL_FAILURE(with(float{}));
      }
      if (type == "c64") {
        ASSERT_NO_FATAL_FAILURE(with(Kokkos::complex<double>{}));
      }
      if (type == "c32") {
        ASSERT_NO_FATAL_FAILURE(with(Kokkos::complex<float>{}));
      }
    }
  }
  EXPECT_EQ(cases, 48);
}

TYPED_TEST(CertifyStage, ListsWhatItCannotCertify) {
  // Entry (0, 0) is one tiny product, (0, 1) has no overlap, (1, 0) is fine; row 2 and column 2 are zero.
  const json rows = {
      {"0x1p+0", "0x1p-60", "0x0p+0"}, {"0x1p+0", "0x1p+0", "0x1p+0"}, {"0x0p+0", "0x0p+0", "0x0p+0"}};
  const json cols = {
      {"0x0p+0", "0x1p-60", "0x1p+0"}, {"0x0p+0", "0x0p+0", "0x1p+0"}, {"0x0p+0", "0x0p+0", "0x0p+0"}};
  const Operand<double> a(rows), b(cols);
  const Impl::CertificateRule rule{3, 53, false};
  EXPECT_EQ(this->run(a, b, 3, 3, true, rule).open, 2);
  std::vector<std::int64_t> open;
  const CertificateRecord got = this->run(a, b, 3, 3, true, rule, &open);
  EXPECT_EQ(open, (std::vector<std::int64_t>{0}));
  EXPECT_NE(rule.table().moduli_for(got.bits, got.row_norm_2, got.col_norm_2), 0);
}

TYPED_TEST(CertifyStage, TheDeviceChoosesTheLowerBoundThatFollows) {
  const Impl::CertificateRule rule{1000, 53, false};
  const Impl::CertificateTable table = rule.table();
  constexpr std::int64_t a_few = 5;
  // The second number of bits is what could be reached: more than one modulus less, or not.
  const std::int32_t far = rule.half_bits(15) - rule.needed_bits(0),
                     near = rule.half_bits(14) - rule.needed_bits(0),
                     little = rule.half_bits(12) - rule.needed_bits(0);
  ASSERT_EQ(table.moduli_for(far, 9, 9), 15);
  ASSERT_EQ(table.moduli_for(little, 9, 9), 12);
  for (const bool is_whole : {false, true})
    for (const std::int64_t open : {0, 1, 5, 6, 100})
      for (const std::int32_t least : {near, little}) {
        const auto record =
            std::make_unique<CertificateRecord>(CertificateRecord{far, least, 9, 9, open, 7, 7});
        Impl::choose_bound(this->exec, table, is_whole, a_few, record.get());
        this->exec.fence();
        const bool done = open == 0 && (is_whole || least == near);
        const bool whole = !done && !is_whole && (open == 0 || open > a_few);
        EXPECT_EQ(table.accepted({far, least, 9, 9, open, 0, 0}, is_whole), done ? 15 : 0);
        EXPECT_EQ(record->skip_whole == 0, whole);
        EXPECT_EQ(record->skip_fine == 0, !done && !whole);
        EXPECT_EQ(record->bits, done ? far : CertificateRecord::none);
        EXPECT_EQ(record->least_bits, done ? least : CertificateRecord::none);
        EXPECT_EQ(record->open, 0);
        EXPECT_EQ(record->row_norm_2, 9);

        // What comes with a flag that is set changes nothing.
        constexpr std::int64_t m = 70, n = 33, ld = 80;
        const std::vector<CertificateVector> vectors(
            static_cast<std::size_t>(m + n),
            CertificateVector::of(std::uint64_t{1} << 40, std::uint64_t{1} << 28));
        const std::vector<std::int32_t> coarse(static_cast<std::size_t>(ld * n), 1000),
            fine(coarse.size(), 1 << 20);
        const std::int32_t before = record->bits;
        Impl::certify(this->exec,
                      Impl::CertifyBlock{m, n, ld, coarse.data(), fine.data(), nullptr, vectors.data(),
                                         vectors.data() + m, 1000, rule.most_bits(), 1},
                      Impl::OpenEntries{nullptr, 0, 0, 0, m}, record.get(), &record->skip_fine);
        this->exec.fence();
        EXPECT_EQ(record->bits == before, record->skip_fine != 0);

        // After the coarse one over all positions the fine one follows where entries are open.
        for (const std::int64_t still_open : {0, 3}) {
          CertificateRecord& next = *record;
          next = {far, least, 9, 9, still_open, whole ? 0 : 1, 1};
          Impl::choose_fine_bound(this->exec, &next);
          this->exec.fence();
          EXPECT_EQ(next.skip_fine == 0, whole && still_open != 0);
          EXPECT_EQ(next.bits, whole && still_open != 0 ? CertificateRecord::none : far);
        }
      }
}

// ---- how close the choice is ------------------------------------------------------------------------

/// Smallest number of moduli by the same rule with |A| |B| itself in place of its lower bounds (cut to an integer, which
/// is above 2^20 for these data).
int moduli_with_the_exact_product(const std::vector<double>& A, const std::vector<double>& B,
                                  std::int64_t size, std::int64_t k, std::int64_t c) {
  const Impl::CertificateRule rule{k, 53, false};
  const auto vectors = [&](const std::vector<double>& x) {
    std::vector<std::pair<CertificateVector, std::int32_t>> result;
    for (std::int64_t v = 0; v < size; ++v) {
      const std::vector<double> one(x.begin() + v * k, x.begin() + (v + 1) * k);
      const Impl::ChunkStatistics s = reference_statistics(one);
      result.emplace_back(CertificateVector::of(s.square_sum, s.sum), s.exponent);
    }
    return result;
  };
  const auto a = vectors(A), b = vectors(B);
  std::int32_t bits = CertificateRecord::none, rows = 0, cols = 0;
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j < size; ++j) {
      const auto& [x, e] = at(a, i);
      const auto& [y, f] = at(b, j);
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += std::fabs(at(A, i * k + l) * at(B, j * k + l));
      const auto g = static_cast<std::uint64_t>(std::ldexp(sum, 28 - e - f));
      bits = std::max(
          bits, Impl::certificate_bits(Impl::certificate_error(x, y), static_cast<std::uint64_t>(c) * g));
      rows = std::max(rows, x.norm_2), cols = std::max(cols, y.norm_2);
    }
  return rule.table().moduli_for(bits, rows, cols);
}

TEST(Certificate, TheChoiceIsCloseToThatWithTheExactProduct) {
  using Space = Kokkos::DefaultHostExecutionSpace;
  const std::int64_t size = 24;
  Random random(202);
  const auto normal = [&] {
    double sum = -6;  // of twelve uniform numbers: normal enough
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.bits() >> 11) * 0x1p-53;
    return sum;
  };
  for (const std::int64_t k : {1024, 16384})
    for (const double phi : {0.0, 0.5, 1.0, 2.0, 4.0}) {
      std::vector<double> A(static_cast<std::size_t>(size * k)), B(A.size());
      for (std::vector<double>* x : {&A, &B})
        for (double& value : *x)
          value = (static_cast<double>(random.bits() >> 11) * 0x1p-53 - 0.5) * std::exp(phi * normal());
      GemmPlan<Space, double> plan(Space{}, 'T', 'N', size, size, k);
      const Kokkos::View<double**, Kokkos::LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged> a(A.data(), k,
                                                                                               size),
          b(B.data(), k, size);
      const Kokkos::View<double**, Kokkos::LayoutLeft, SharedSpace> C("C", size, size);
      plan.execute(Space{}, 1.0, a, b, 0.0, C);
      const GemmReport report = plan.report();
      const int exact = moduli_with_the_exact_product(A, B, size, k, k);
      std::printf("k = %d, phi = %g: %d moduli, with the exact product %d\n", static_cast<int>(k), phi,
                  report.num_moduli, exact);
      EXPECT_EQ(report.exact_entries, 0);
      EXPECT_GE(report.num_moduli, exact);
      EXPECT_LE(report.num_moduli, exact + (phi <= 2 ? 1 : 2)) << "k = " << k << ", phi = " << phi;
    }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
