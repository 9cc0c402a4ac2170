// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Hostile matrix files: the readers of examples/gemm_files end with a matrix or a FileError, and a matrix that was read
// is read again from what is written of it.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ByteSource.hpp"
#include "MatrixFiles.hpp"

namespace {

using GemmFiles::DenseMatrix;

constexpr std::size_t max_bytes = std::size_t{1} << 20;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::abort();
}

std::string matrix_market_of(const DenseMatrix& x) {
  std::string text = "%%MatrixMarket matrix array real general\n" + std::to_string(x.rows) + " " +
                     std::to_string(x.cols) + "\n";
  for (const double value : x.values) {
    char line[64];
    std::snprintf(line, sizeof(line), "%.17g\n", value);
    text += line;
  }
  return text;
}

std::string npy_of(const DenseMatrix& x) {
  const std::string header = "{'descr': '<f8', 'fortran_order': True, 'shape': (" + std::to_string(x.rows) +
                             ", " + std::to_string(x.cols) + "), }\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(x.values.data()), x.values.size() * sizeof(double));
  return bytes;
}

void require_equal(const DenseMatrix& x, const DenseMatrix& y) {
  require(x.rows == y.rows && x.cols == y.cols && x.values.size() == y.values.size(), "another size");
  for (std::size_t e = 0; e < x.values.size(); ++e)
    require(std::memcmp(&x.values[e], &y.values[e], sizeof(double)) == 0 ||
                (std::isnan(x.values[e]) && std::isnan(y.values[e])),
            "another value");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string name = "the file";
  for (const bool is_npy : {false, true}) {
    try {
      const DenseMatrix x = is_npy ? GemmFiles::read_npy(bytes, name, max_bytes)
                                   : GemmFiles::read_matrix_market(bytes, name, max_bytes);
      require(x.rows >= 0 && x.cols >= 0, "a negative size");
      require(x.values.size() == static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols),
              "sizes and values do not agree");
      require(x.values.size() * sizeof(double) <= max_bytes, "more than was allowed");
      require_equal(x, GemmFiles::read_matrix_market(matrix_market_of(x), name, max_bytes));
      require_equal(x, GemmFiles::read_npy(npy_of(x), name, max_bytes));
    } catch (const GemmFiles::FileError& error) {
      const std::string what = error.what();
      require(what.rfind(name + ", ", 0) == 0, "a message without the file's name");
      for (const char c : what)
        require(c >= 0x20 && c < 0x7f, "a message with characters that cannot be shown");
    }
  }
  return 0;
}
