// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MatrixFiles.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace GemmFiles {
namespace {

// Text of a hostile file inside a message: short and printable.
std::string shown(std::string_view text) {
  constexpr std::size_t max_chars = 40;
  static const char* const digits = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, max_chars)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += "\\x";
      result += digits[byte >> 4];
      result += digits[byte & 15];
    }
  }
  if (text.size() > max_chars) result += "...";
  return result + "'";
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string dimensions(std::int64_t rows, std::int64_t cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

// Of the dense array; an extent of 0 counts as 1, so that loops over the other one stay within memory too.
bool fits(std::int64_t rows, std::int64_t cols, std::size_t max_bytes) {
  const auto r = static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 1));
  const auto c = static_cast<std::uint64_t>(std::max<std::int64_t>(cols, 1));
  const auto max_values = std::min<std::uint64_t>(max_bytes, PTRDIFF_MAX) / sizeof(double);
  return r <= max_values && c <= max_values / r;
}

std::string too_large(std::int64_t rows, std::int64_t cols, std::size_t max_bytes) {
  return "a " + dimensions(rows, cols) + " matrix as a dense array does not fit into the " +
         std::to_string(max_bytes) + " bytes of memory there are.";
}

DenseMatrix allocate(std::int64_t rows, std::int64_t cols) {
  DenseMatrix matrix;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.values.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  return matrix;
}

// ---- Matrix Market
// -----------------------------------------------------------------------------------------

class MatrixMarketReader {
 public:
  MatrixMarketReader(std::string_view text, const std::string& name, std::size_t max_bytes)
      : m_rest(text), m_name(name), m_max_bytes(max_bytes) {}

  DenseMatrix read() {
    read_banner();
    read_sizes();
    try {
      DenseMatrix matrix = m_is_array ? read_array() : read_coordinate();
      matrix.kind = std::string("Matrix Market ") + (m_is_array ? "array" : "coordinate") +
                    (m_is_integer ? " integer " : " real ") + m_symmetry_name;
      if (!m_is_array) matrix.kind += ", " + std::to_string(m_stored) + " stored entries";
      return matrix;
    } catch (const std::bad_alloc&) {
      m_line_number = m_size_line;
      fail("a " + dimensions(m_rows, m_cols) + " matrix as a dense array could not be allocated.");
    }
  }

 private:
  enum class Symmetry { general, symmetric, skew };

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(m_name + ", line " + std::to_string(m_line_number) + ": " + what);
  }

  bool next_line() {
    if (m_rest.empty()) return false;
    const std::size_t end = m_rest.find('\n');
    m_line = m_rest.substr(0, end);
    m_rest.remove_prefix(end == std::string_view::npos ? m_rest.size() : end + 1);
    ++m_line_number;
    return true;
  }

  // The next line with something on it that is not a comment.
  bool next_data_line() {
    while (next_line()) {
      const std::size_t first = m_line.find_first_not_of(blanks);
      if (first != std::string_view::npos && m_line[first] != '%') return true;
    }
    return false;
  }

  // Empty at the end of the line.
  std::string_view next_token() {
    const std::size_t first = m_line.find_first_not_of(blanks);
    if (first == std::string_view::npos) {
      m_line = {};
      return {};
    }
    const std::size_t end = std::min(m_line.find_first_of(blanks, first), m_line.size());
    const std::string_view token = m_line.substr(first, end - first);
    m_line.remove_prefix(end);
    return token;
  }

  void read_banner() {
    if (!next_line()) {
      m_line_number = 1;
      fail("expected the banner '%%MatrixMarket matrix ...', got an empty file.");
    }
    const std::string_view line = m_line;
    if (lower(next_token()) != "%%matrixmarket")
      fail("expected the banner '%%MatrixMarket matrix ...', got " + shown(line) + ".");
    const std::string object = lower(next_token()), format = lower(next_token()), field = lower(next_token());
    m_symmetry_name = lower(next_token());
    if (object != "matrix") fail("expected the object 'matrix', got " + shown(object) + ".");
    if (format != "array" && format != "coordinate")
      fail("expected the format 'array' or 'coordinate', got " + shown(format) + ".");
    if (field != "real" && field != "integer")
      fail("expected the field 'real' or 'integer', got " + shown(field) + ".");
    if (m_symmetry_name == "general") {
      m_symmetry = Symmetry::general;
    } else if (m_symmetry_name == "symmetric") {
      m_symmetry = Symmetry::symmetric;
    } else if (m_symmetry_name == "skew-symmetric") {
      m_symmetry = Symmetry::skew;
    } else {
      fail("expected the symmetry 'general', 'symmetric' or 'skew-symmetric', got " + shown(m_symmetry_name) +
           ".");
    }
    const std::string_view extra = next_token();
    if (!extra.empty()) fail("expected the end of the banner, got " + shown(extra) + ".");
    m_is_array = format == "array";
    m_is_integer = field == "integer";
  }

  void read_sizes() {
    const std::string expected =
        m_is_array ? "two sizes (rows, columns)" : "three sizes (rows, columns, entries)";
    if (!next_data_line()) fail("expected " + expected + ", got the end of the file.");
    const std::string_view line = m_line;
    const int count = m_is_array ? 2 : 3;
    std::array<std::int64_t, 3> sizes{};
    for (int t = 0; t < count; ++t) {
      const std::string_view token = next_token();
      const auto value = parse_integer(token);
      if (!value || *value < 0) fail("expected " + expected + ", got " + shown(line) + ".");
      sizes[static_cast<std::size_t>(t)] = *value;
    }
    if (!next_token().empty()) fail("expected " + expected + ", got " + shown(line) + ".");
    m_rows = sizes[0];
    m_cols = sizes[1];
    m_stored = sizes[2];
    m_size_line = m_line_number;
    if (m_symmetry != Symmetry::general && m_rows != m_cols)
      fail("expected as many rows as columns in a " + m_symmetry_name + " matrix, got " +
           dimensions(m_rows, m_cols) + ".");
    if (!fits(m_rows, m_cols, m_max_bytes)) fail(too_large(m_rows, m_cols, m_max_bytes));
  }

  DenseMatrix read_array() {
    // The products cannot overflow: rows * cols * 8 bytes were checked.
    const std::int64_t count = m_symmetry == Symmetry::general ? m_rows * m_cols
                               : m_symmetry == Symmetry::symmetric
                                   ? m_rows * (m_rows + 1) / 2
                                   : m_rows * std::max<std::int64_t>(m_rows - 1, 0) / 2;
    // A value takes at least two characters, so sizes that lie about the file cannot make this large.
    std::vector<double> values;
    values.reserve(std::min(static_cast<std::size_t>(count), m_rest.size() / 2 + 1));
    while (next_data_line()) {
      for (std::string_view token = next_token(); !token.empty(); token = next_token()) {
        if (static_cast<std::int64_t>(values.size()) == count)
          fail("expected the end of the file after " + std::to_string(count) + " values, got " +
               shown(token) + ".");
        values.push_back(parse_value(token));
      }
    }
    if (static_cast<std::int64_t>(values.size()) != count)
      fail("expected " + std::to_string(count) + " values, got the end of the file after " +
           std::to_string(values.size()) + ".");
    if (m_symmetry == Symmetry::general) {
      DenseMatrix matrix;
      matrix.rows = m_rows;
      matrix.cols = m_cols;
      matrix.values = std::move(values);
      return matrix;
    }
    DenseMatrix matrix = allocate(m_rows, m_cols);
    auto value = values.begin();
    for (std::int64_t j = 0; j < m_cols; ++j)
      for (std::int64_t i = m_symmetry == Symmetry::skew ? j + 1 : j; i < m_rows; ++i) {
        matrix(i, j) = *value;
        if (i != j) matrix(j, i) = m_symmetry == Symmetry::skew ? -*value : *value;
        ++value;
      }
    return matrix;
  }

  DenseMatrix read_coordinate() {
    DenseMatrix matrix = allocate(m_rows, m_cols);
    std::int64_t got = 0;
    while (next_data_line()) {
      const std::string_view line = m_line;
      if (got == m_stored)
        fail("expected the end of the file after " + std::to_string(m_stored) + " entries, got " +
             shown(line) + ".");
      const std::int64_t i = parse_index(next_token(), "row", m_rows, line);
      const std::int64_t j = parse_index(next_token(), "column", m_cols, line);
      const std::string_view v = next_token();
      if (v.empty() || !next_token().empty())
        fail("expected row, column and value, got " + shown(line) + ".");
      const double value = parse_value(v);
      add(matrix(i, j), value);
      if (m_symmetry != Symmetry::general) mirror(matrix, i, j, value);
      ++got;
    }
    if (got != m_stored)
      fail("expected " + std::to_string(m_stored) + " entries, got the end of the file after " +
           std::to_string(got) + ".");
    return matrix;
  }

  // Keeps the sign of a zero that is stored once.
  static void add(double& entry, double value) { entry = entry == 0.0 ? value : entry + value; }

  void mirror(DenseMatrix& matrix, std::int64_t i, std::int64_t j, double value) {
    if (i == j) {
      if (m_symmetry == Symmetry::skew && value != 0.0)
        fail("expected a zero diagonal in a skew-symmetric matrix, got an entry in row and column " +
             std::to_string(i + 1) + ".");
      return;
    }
    std::int64_t& here = i > j ? m_below_line : m_above_line;
    const std::int64_t& other = i > j ? m_above_line : m_below_line;
    if (here == 0) here = m_line_number;
    if (other != 0)
      fail("expected entries on one side of the diagonal only in a " + m_symmetry_name +
           " matrix, got entry (" + std::to_string(i + 1) + ", " + std::to_string(j + 1) +
           ") after one on the other side in line " + std::to_string(other) + ".");
    add(matrix(j, i), m_symmetry == Symmetry::skew ? -value : value);
  }

  std::int64_t parse_index(std::string_view token, const char* what, std::int64_t extent,
                           std::string_view line) const {
    if (token.empty()) fail("expected row, column and value, got " + shown(line) + ".");
    const auto value = parse_integer(token);
    if (!value || *value < 1 || *value > extent)
      fail(std::string("expected a ") + what + " index from 1 to " + std::to_string(extent) + ", got " +
           shown(token) + ".");
    return *value - 1;
  }

  // from_chars takes no '+'.
  static std::string_view without_plus(std::string_view token) {
    const bool has_plus = token.size() > 1 && token[0] == '+' && token[1] != '-';
    return has_plus ? token.substr(1) : token;
  }

  // Nothing when the token is not one integer of 64 bits.
  static std::optional<std::int64_t> parse_integer(std::string_view token) {
    token = without_plus(token);
    std::int64_t value = 0;
    const char* const end = token.data() + token.size();
    const auto [stop, code] = std::from_chars(token.data(), end, value);
    if (code != std::errc() || stop != end || token.empty()) return std::nullopt;
    return value;
  }

  double parse_value(std::string_view token) const {
    if (m_is_integer) {
      const auto value = parse_integer(token);
      if (!value) fail("expected an integer of at most 64 bits, got " + shown(token) + ".");
      const auto rounded = static_cast<double>(*value);
      // 2^63 does not convert back.
      if (rounded >= 0x1p63 || static_cast<std::int64_t>(rounded) != *value)
        fail("expected an integer that is exact in double precision, got " + shown(token) + ".");
      return rounded;
    }
    const std::string_view digits = without_plus(token);
    double value = 0.0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, code] = std::from_chars(digits.data(), end, value);
    if (code == std::errc::invalid_argument || stop != end)
      fail("expected a real number, got " + shown(token) + ".");
    if (code == std::errc::result_out_of_range) value = std::strtod(std::string(digits).c_str(), nullptr);
    if (std::isinf(value) && lower(digits).find('n') == std::string::npos)
      fail("expected a number in the range of double precision, got " + shown(token) + ".");
    return value;
  }

  static constexpr const char* blanks = " \t\r\v\f";

  std::string_view m_rest;
  const std::string& m_name;
  std::size_t m_max_bytes;
  std::string_view m_line;
  std::int64_t m_line_number = 0;
  std::int64_t m_size_line = 0;
  std::int64_t m_below_line = 0;
  std::int64_t m_above_line = 0;
  bool m_is_array = false;
  bool m_is_integer = false;
  Symmetry m_symmetry = Symmetry::general;
  std::string m_symmetry_name;
  std::int64_t m_rows = 0;
  std::int64_t m_cols = 0;
  std::int64_t m_stored = 0;
};

// ---- NumPy
// -------------------------------------------------------------------------------------------------

constexpr std::string_view npy_magic("\x93NUMPY", 6);

class NpyReader {
 public:
  NpyReader(std::string_view bytes, const std::string& name, std::size_t max_bytes)
      : m_bytes(bytes), m_name(name), m_max_bytes(max_bytes) {}

  DenseMatrix read() {
    read_preamble();
    read_dictionary();
    const std::size_t shape_at = m_shape_at;
    if (m_shape.size() != 2)
      fail(shape_at, "expected a shape of 2 dimensions, got " + std::to_string(m_shape.size()) + ".");
    const std::int64_t rows = m_shape[0], cols = m_shape[1];
    if (!fits(rows, cols, m_max_bytes)) fail(shape_at, too_large(rows, cols, m_max_bytes));
    const std::size_t expected =
        static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * sizeof(double);
    const std::string_view data = m_bytes.substr(m_header_end);
    if (data.size() != expected)
      fail(m_header_end, "expected " + std::to_string(expected) + " bytes of data for a " +
                             dimensions(rows, cols) + " array, got " + std::to_string(data.size()) + ".");
    try {
      DenseMatrix matrix = allocate(rows, cols);
      for (std::int64_t j = 0; j < cols; ++j)
        for (std::int64_t i = 0; i < rows; ++i)
          matrix(i, j) = value_at(data, m_fortran_order ? i + j * rows : i * cols + j);
      matrix.kind = "NumPy " + m_version + " float64, " + (m_fortran_order ? "Fortran" : "C") + " order";
      return matrix;
    } catch (const std::bad_alloc&) {
      fail(shape_at, "a " + dimensions(rows, cols) + " matrix as a dense array could not be allocated.");
    }
  }

 private:
  [[noreturn]] void fail(std::size_t byte, const std::string& what) const {
    throw FileError(m_name + ", byte " + std::to_string(byte) + ": " + what);
  }

  static double value_at(std::string_view data, std::int64_t index) {
    const char* p = data.data() + index * 8;
    std::uint64_t bits = 0;
    for (int b = 7; b >= 0; --b) bits = bits << 8 | static_cast<unsigned char>(p[b]);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  void read_preamble() {
    if (m_bytes.substr(0, npy_magic.size()) != npy_magic)
      fail(0,
           "expected the magic string '\\x93NUMPY', got " + shown(m_bytes.substr(0, npy_magic.size())) + ".");
    if (m_bytes.size() < 10)
      fail(m_bytes.size(),
           "expected the format version and the length of the header, got the end of the file.");
    const auto byte = [this](std::size_t at) { return static_cast<unsigned char>(m_bytes[at]); };
    m_version = std::to_string(byte(6)) + "." + std::to_string(byte(7));
    if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)
      fail(6, "expected the format version 1.0, 2.0 or 3.0, got " + m_version + ".");
    const std::size_t length_bytes = byte(6) == 1 ? 2 : 4;
    m_at = 8 + length_bytes;
    if (m_bytes.size() < m_at)
      fail(m_bytes.size(), "expected the length of the header, got the end of the file.");
    std::size_t length = 0;
    for (std::size_t b = length_bytes; b-- > 0;) length = length << 8 | byte(8 + b);
    if (length > m_bytes.size() - m_at)
      fail(8, "expected a header of " + std::to_string(length) + " bytes, got " +
                  std::to_string(m_bytes.size() - m_at) + " bytes up to the end of the file.");
    m_header_end = m_at + length;
  }

  // {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }: the three keys once each, in any order.
  void read_dictionary() {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::size_t key_at = skip_blanks();
      const std::string key = read_string();
      expect(':');
      bool* seen = key == "descr"           ? &has_descr
                   : key == "fortran_order" ? &has_order
                   : key == "shape"         ? &has_shape
                                            : nullptr;
      if (seen == nullptr)
        fail(key_at,
             "expected one of the keys 'descr', 'fortran_order' and 'shape', got " + shown(key) + ".");
      if (*seen) fail(key_at, "expected the key " + shown(key) + " once, got it twice.");
      *seen = true;
      if (key == "descr") {
        read_descr();
      } else if (key == "fortran_order") {
        read_order();
      } else {
        read_shape();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    const std::size_t end = skip_blanks();
    if (end != m_header_end) fail(end, "expected the end of the header, got " + shown(header_rest()) + ".");
    const char* missing = !has_descr   ? "descr"
                          : !has_order ? "fortran_order"
                          : !has_shape ? "shape"
                                       : nullptr;
    if (missing != nullptr)
      fail(end, std::string("expected the key '") + missing + "', got the end of the header.");
  }

  void read_descr() {
    const std::size_t at = skip_blanks();
    std::string found;
    if (at < m_header_end && (m_bytes[at] == '\'' || m_bytes[at] == '"')) {
      found = read_string();
    } else {  // a structured type: named as it stands
      const std::string_view rest = header_rest();
      found = rest.substr(0, std::min(rest.rfind(']'), rest.size() - 1) + 1);
    }
    if (found != "<f8") fail(at, "expected the dtype '<f8', got " + shown(found) + ".");
  }

  void read_order() {
    const std::size_t at = skip_blanks();
    if (header_rest().substr(0, 4) == "True") {
      m_fortran_order = true;
      m_at += 4;
    } else if (header_rest().substr(0, 5) == "False") {
      m_fortran_order = false;
      m_at += 5;
    } else {
      fail(at, "expected True or False, got " + shown(header_rest()) + ".");
    }
  }

  void read_shape() {
    m_shape_at = skip_blanks();
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      const std::size_t at = skip_blanks();
      if (!comma) fail(at, "expected ',' or ')', got " + shown(header_rest()) + ".");
      std::int64_t extent = -1;
      const char* const end = m_bytes.data() + m_header_end;
      const auto [stop, status] = std::from_chars(m_bytes.data() + at, end, extent);
      if (status != std::errc() || extent < 0)
        fail(at, "expected an extent from 0 to 2^63 - 1, got " + shown(header_rest()) + ".");
      m_at = static_cast<std::size_t>(stop - m_bytes.data());
      if (m_at < m_header_end && m_bytes[m_at] == 'L') ++m_at;  // a long integer of Python 2
      m_shape.push_back(extent);
      comma = accept(',');
    }
    if (m_shape.size() == 1 && !comma)  // (3) is the integer 3 in Python, not a tuple
      fail(m_shape_at, "expected a tuple of extents, got a number in parentheses.");
  }

  std::string read_string() {
    const std::size_t at = skip_blanks();
    if (at == m_header_end || (m_bytes[at] != '\'' && m_bytes[at] != '"'))
      fail(at, "expected a string in quotes, got " + shown(header_rest()) + ".");
    const std::size_t end = m_bytes.find(m_bytes[at], at + 1);
    if (end == std::string_view::npos || end >= m_header_end)
      fail(at, "expected the string to end within the header, got " + shown(header_rest()) + ".");
    m_at = end + 1;
    return std::string(m_bytes.substr(at + 1, end - at - 1));
  }

  std::string_view header_rest() const { return m_bytes.substr(m_at, m_header_end - m_at); }

  std::size_t skip_blanks() {
    while (m_at < m_header_end && (m_bytes[m_at] == ' ' || m_bytes[m_at] == '\n' || m_bytes[m_at] == '\t'))
      ++m_at;
    return m_at;
  }

  bool accept(char c) {
    if (skip_blanks() == m_header_end || m_bytes[m_at] != c) return false;
    ++m_at;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(m_at, std::string("expected '") + c + "', got " + shown(header_rest()) + ".");
  }

  std::string_view m_bytes;
  const std::string& m_name;
  std::size_t m_max_bytes;
  std::string m_version;
  std::size_t m_at = 0;
  std::size_t m_header_end = 0;
  std::size_t m_shape_at = 0;
  bool m_fortran_order = false;
  std::vector<std::int64_t> m_shape;
};

// ---- Files
// -------------------------------------------------------------------------------------------------

bool has_extension(const std::string& path, std::string_view extension) {
  return path.size() > extension.size() &&
         std::string_view(path).substr(path.size() - extension.size()) == extension;
}

[[noreturn]] void fail_with_errno(const std::string& path, const char* what) {
  const char* const reason = std::strerror(errno);
  throw FileError(path + ": " + what + ": " + reason + ".");
}

std::string read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_with_errno(path, "cannot be opened");
  std::string bytes;
  try {
    struct stat status {};
    constexpr std::size_t block = std::size_t(1) << 20;
    const std::size_t max_bytes = physical_memory_bytes();
    const bool has_size = ::fstat(file, &status) == 0 && status.st_size > 0;
    if (has_size && static_cast<std::uintmax_t>(status.st_size) > max_bytes) throw std::bad_alloc();
    if (has_size) bytes.reserve(static_cast<std::size_t>(status.st_size) + 1);
    std::size_t size = 0;
    for (;;) {
      if (size > max_bytes) throw std::bad_alloc();
      if (bytes.size() == size) bytes.resize(std::max(std::min(bytes.capacity(), size + block), size + 4096));
      const ssize_t got = ::read(file, bytes.data() + size, bytes.size() - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_with_errno(path, "cannot be read");
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    bytes.resize(size);
  } catch (const FileError&) {
    ::close(file);
    throw;
  } catch (const std::exception&) {  // bad_alloc, length_error
    ::close(file);
    throw FileError(path + ": the file does not fit into memory.");
  }
  ::close(file);
  return bytes;
}

// A file that appears under its name only when it is complete.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : m_path(path), m_temporary(path + ".partial-XXXXXX") {
    sigset_t signals, old_signals;
    sigemptyset(&signals);
    for (const int signal : deadly) sigaddset(&signals, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals, &old_signals);  // until the handler can know the name
    m_file = ::mkstemp(m_temporary.data());
    const int reason = errno;
    if (m_file >= 0) install_handlers();
    ::pthread_sigmask(SIG_SETMASK, &old_signals, nullptr);
    errno = reason;
    if (m_file < 0) fail_with_errno(m_path, "cannot be written");
    struct stat status {};
    mode_t mode = 0666;
    if (::stat(m_path.c_str(), &status) == 0) {
      mode = status.st_mode & 0777;
    } else {
      const mode_t mask = ::umask(0);
      ::umask(mask);
      mode &= ~mask;
    }
    (void)::fchmod(m_file, mode);  // where a file system has no modes, the file is as good
  }

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  ~OutputFile() {
    if (m_file >= 0) ::close(m_file);
    if (!m_complete) ::unlink(m_temporary.c_str());
    for (std::size_t t = 0; t < deadly.size(); ++t) ::sigaction(deadly[t], &m_old_deadly[t], nullptr);
    ::sigaction(SIGXFSZ, &m_old_size_limit, nullptr);
    s_temporary = nullptr;
  }

  void write(const char* bytes, std::size_t size) {
    while (size > 0) {
      const ssize_t got = ::write(m_file, bytes, size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_with_errno(m_path, "cannot be written");
      bytes += got;
      size -= static_cast<std::size_t>(got);
    }
  }

  void complete() {
    // EINVAL: not a thing that can be synchronised
    if (::fsync(m_file) != 0 && errno != EINVAL) fail_with_errno(m_path, "cannot be written");
    const int file = m_file;
    m_file = -1;
    if (::close(file) != 0) fail_with_errno(m_path, "cannot be written");
    if (::rename(m_temporary.c_str(), m_path.c_str()) != 0) fail_with_errno(m_path, "cannot be written");
    m_complete = true;
  }

 private:
  void install_handlers() {
    s_temporary = m_temporary.c_str();
    struct sigaction action {};
    action.sa_handler = &OutputFile::remove_and_die;
    for (std::size_t t = 0; t < deadly.size(); ++t) ::sigaction(deadly[t], &action, &m_old_deadly[t]);
    action.sa_handler = SIG_IGN;  // a file size limit then fails the write instead of ending the program
    ::sigaction(SIGXFSZ, &action, &m_old_size_limit);
  }

  static void remove_and_die(int signal) {
    if (const char* const path = s_temporary) ::unlink(path);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }

  static constexpr std::array<int, 3> deadly{SIGHUP, SIGINT, SIGTERM};
  static const char* volatile s_temporary;

  std::string m_path;
  std::string m_temporary;
  int m_file = -1;
  bool m_complete = false;
  std::array<struct sigaction, deadly.size()> m_old_deadly{};
  struct sigaction m_old_size_limit {};
};

const char* volatile OutputFile::s_temporary = nullptr;

void write_matrix_market(OutputFile& file, const DenseMatrix& matrix) {
  std::string buffer = "%%MatrixMarket matrix array real general\n" + std::to_string(matrix.rows) + " " +
                       std::to_string(matrix.cols) + "\n";
  constexpr std::size_t flush_at = std::size_t(1) << 16;
  for (const double value : matrix.values) {
    std::array<char, 32> digits{};  // the longest: -2.2250738585072014e-308
    const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    (void)code;
    buffer.append(digits.data(), end);
    buffer += '\n';
    if (buffer.size() >= flush_at) {
      file.write(buffer.data(), buffer.size());
      buffer.clear();
    }
  }
  file.write(buffer.data(), buffer.size());
}

void write_npy(OutputFile& file, const DenseMatrix& matrix) {
  std::string header = "{'descr': '<f8', 'fortran_order': True, 'shape': (" + std::to_string(matrix.rows) +
                       ", " + std::to_string(matrix.cols) + "), }";
  constexpr std::size_t alignment = 64, preamble = 10;
  header.resize((preamble + header.size() + 1 + alignment - 1) / alignment * alignment - preamble - 1, ' ');
  header += '\n';
  std::string buffer(npy_magic);
  buffer += '\x01';
  buffer += '\x00';
  buffer += static_cast<char>(header.size() & 255);
  buffer += static_cast<char>(header.size() >> 8);
  buffer += header;
  constexpr std::size_t flush_at = std::size_t(1) << 16;
  for (const double value : matrix.values) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    for (int b = 0; b < 8; ++b) buffer += static_cast<char>(bits >> (8 * b) & 255);
    if (buffer.size() >= flush_at) {
      file.write(buffer.data(), buffer.size());
      buffer.clear();
    }
  }
  file.write(buffer.data(), buffer.size());
}

}  // namespace

std::size_t physical_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
}

DenseMatrix read_matrix_market(std::string_view text, const std::string& name, std::size_t max_bytes) {
  return MatrixMarketReader(text, name, max_bytes).read();
}

DenseMatrix read_npy(std::string_view bytes, const std::string& name, std::size_t max_bytes) {
  return NpyReader(bytes, name, max_bytes).read();
}

DenseMatrix read_matrix(const std::string& path) {
  const std::string bytes = read_file(path);
  const bool is_npy = std::string_view(bytes).substr(0, npy_magic.size()) == npy_magic ||
                      (has_extension(path, ".npy") && bytes.substr(0, 2) != "%%");
  return is_npy ? read_npy(bytes, path) : read_matrix_market(bytes, path);
}

FileFormat output_format(const std::string& path) {
  if (has_extension(path, ".mtx")) return FileFormat::matrix_market;
  if (has_extension(path, ".npy")) return FileFormat::npy;
  throw FileError(path + ": expected a name that ends in .mtx or .npy for the product.");
}

void write_matrix(const std::string& path, const DenseMatrix& matrix) {
  const FileFormat format = output_format(path);
  OutputFile file(path);
  if (format == FileFormat::matrix_market) {
    write_matrix_market(file, matrix);
  } else {
    write_npy(file, matrix);
  }
  file.complete();
}

}  // namespace GemmFiles
