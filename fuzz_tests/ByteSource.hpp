// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_BYTESOURCE_HPP
#define KOKKOSOZAKI_BYTESOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <string>

namespace KokkosOzaki::Testing {

/// \brief The fuzzer's bytes as decisions; zeros when they are used up, so that every input is a whole case.
class ByteSource {
 public:
  ByteSource(const std::uint8_t* bytes, std::size_t size) : m_bytes(bytes), m_size(size) {}

  std::uint8_t byte() {
    if (m_size == 0) return 0;
    --m_size;
    return *m_bytes++;
  }

  std::uint64_t word(int bytes) {
    std::uint64_t value = 0;
    for (int b = 0; b < bytes; ++b) value |= static_cast<std::uint64_t>(byte()) << (8 * b);
    return value;
  }

  /// In 0 .. count-1; count <= 256.
  int below(int count) { return byte() % count; }

  /// True for one byte value of `count`: rare for a large count, and never for a byte of zero.
  bool one_in(int count) { return byte() % count == count - 1; }

  template <class T, std::size_t N>
  const T& pick(const T (&items)[N]) {
    return items[static_cast<std::size_t>(below(static_cast<int>(N)))];
  }

  bool is_empty() const { return m_size == 0; }
  std::string rest() const { return std::string(reinterpret_cast<const char*>(m_bytes), m_size); }

 private:
  const std::uint8_t* m_bytes;
  std::size_t m_size;
};

}  // namespace KokkosOzaki::Testing

#endif
