// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_COSTMODEL_HPP
#define KOKKOSOZAKI_COSTMODEL_HPP

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace KokkosOzaki::Impl {

/// \brief What a product, or a batch of products, is made of as far as its cost goes.
struct ProductSize {
  std::int64_t m, n, k;
  std::int64_t entries = 1;

  double inputs() const { return double_of(entries) * (double_of(m) + double_of(n)) * double_of(k); }
  double outputs() const { return double_of(entries) * double_of(m) * double_of(n); }
  double multiplications() const { return outputs() * double_of(k); }
  /// Of an INT8 product, with its padding.
  double padded_multiplications() const;

 private:
  static double double_of(std::int64_t x) { return static_cast<double>(x); }
};

/// \brief What products cost on one device for one scalar, in seconds.
struct CostModel {
  double native_call = 0;            ///< a native product of next to no size
  double native_multiplication = 0;  ///< one of the m n k
  double native_entry = 0;           ///< an entry of A, B or C
  double emulated_call = 0;          ///< an emulated product of next to no size
  double int8_multiplication = 0;    ///< one of the m n k, each modulus
  double input = 0;                  ///< an entry of A or B, each modulus
  double output = 0;                 ///< an entry of C, each modulus
  double exact_multiplication = 0;   ///< one of the k of an entry that is computed exactly

  static constexpr std::size_t count = 8;
  std::array<double, count> values() const {
    return {native_call, native_multiplication, native_entry, emulated_call, int8_multiplication, input,
            output,      exact_multiplication};
  }
  static CostModel of(const std::array<double, count>& v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
  }

  double native_seconds(const ProductSize& size) const;
  double emulated_seconds(const ProductSize& size, int num_moduli) const;
  /// The choice of the number of moduli from the data, ahead of the product.
  double selection_seconds(const ProductSize& size) const;
};

/// \brief The model of a key: measured earlier by this process or one that left it in the file, or built in, or measured
/// now and left there. Threads that ask at the same time wait for each other.
///
/// The file is named by the environment variable KOKKOSOZAKI_COST_FILE, else it is kokkosozaki/costs.txt in
/// $XDG_CACHE_HOME or ~/.cache: a line for each key, "key = eight numbers". Lines that are something else are ignored and
/// kept. A file that cannot be written is no error: the next process measures again.
/// \param key of one line, without " = "
CostModel cost_model(const std::string& key, const std::function<CostModel()>& measure);

/// Whether cost_model() would return without measuring.
bool cost_model_is_known(const std::string& key);

/// What the CPU calls itself.
std::string cpu_name();

}  // namespace KokkosOzaki::Impl

#endif
