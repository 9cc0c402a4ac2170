// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MatrixFiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using GemmFiles::DenseMatrix;
using GemmFiles::FileError;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

DenseMatrix mtx(const std::string& text) {
  return GemmFiles::read_matrix_market(text, "f.mtx");
}

std::string mtx_error(const std::string& text) {
  return message_of([&] { mtx(text); });
}

std::string npy_error(const std::string& bytes) {
  return message_of([&] { GemmFiles::read_npy(bytes, "f.npy"); });
}

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string result;
  for (int b = 0; b < bytes; ++b) result += static_cast<char>(value >> (8 * b) & 255);
  return result;
}

std::string npy_file(const std::string& header, const std::vector<double>& values, int major = 1) {
  std::string result("\x93NUMPY", 6);
  result += static_cast<char>(major);
  result += '\0';
  result += little_endian(header.size(), major == 1 ? 2 : 4) + header;
  for (const double value : values) result += little_endian(bits_of(value), 8);
  return result;
}

void expect_same_bits(const DenseMatrix& got, const DenseMatrix& expected) {
  ASSERT_EQ(got.rows, expected.rows);
  ASSERT_EQ(got.cols, expected.cols);
  ASSERT_EQ(got.values.size(), expected.values.size());
  for (std::int64_t j = 0; j < got.cols; ++j)
    for (std::int64_t i = 0; i < got.rows; ++i)
      EXPECT_EQ(bits_of(got(i, j)), bits_of(expected(i, j)))
          << "(" << i << ", " << j << "): " << got(i, j) << ", expected " << expected(i, j);
}

DenseMatrix matrix(std::int64_t rows, std::int64_t cols, const std::vector<double>& by_columns) {
  DenseMatrix result;
  result.rows = rows;
  result.cols = cols;
  result.values = by_columns;
  return result;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "matrix_files_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    m_path = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(m_path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (m_path / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(m_path))
      result.push_back(entry.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::filesystem::path m_path;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

const std::string general_array = "%%MatrixMarket matrix array real general\n";
const std::string general_coordinate = "%%MatrixMarket matrix coordinate real general\n";

// ---- Matrix Market: what is read
// ---------------------------------------------------------------------------

TEST(MatrixMarketTest, ReadsArrayGeneralByColumns) {
  const DenseMatrix read = mtx(general_array + "2 3\n1\n2\n3\n4\n5\n6\n");
  expect_same_bits(read, matrix(2, 3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read.kind, "Matrix Market array real general");
}

TEST(MatrixMarketTest, ReadsArraySymmetricFromTheLowerTriangle) {
  expect_same_bits(mtx("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"),
                   matrix(3, 3, {1, 2, 3, 2, 4, 5, 3, 5, 6}));
}

TEST(MatrixMarketTest, ReadsArraySkewSymmetricFromTheStrictLowerTriangle) {
  expect_same_bits(mtx("%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n-3\n"),
                   matrix(3, 3, {0, 1, 2, -1, 0, -3, -2, 3, 0}));
  expect_same_bits(mtx("%%MatrixMarket matrix array real skew-symmetric\n0 0\n"), matrix(0, 0, {}));
}

TEST(MatrixMarketTest, ReadsCoordinateGeneral) {
  const DenseMatrix read = mtx(general_coordinate + "2 3 2\n2 1 -0.5\n1 3 1e300\n");
  expect_same_bits(read, matrix(2, 3, {0, -0.5, 0, 0, 1e300, 0}));
  EXPECT_EQ(read.kind, "Matrix Market coordinate real general, 2 stored entries");
}

TEST(MatrixMarketTest, ReadsCoordinateSymmetricFromEitherTriangle) {
  const std::string banner = "%%MatrixMarket matrix coordinate integer symmetric\n";
  const DenseMatrix expected = matrix(3, 3, {7, 0, 5, 0, 0, 6, 5, 6, 0});
  expect_same_bits(mtx(banner + "3 3 3\n1 1 7\n3 1 5\n3 2 6\n"), expected);
  expect_same_bits(mtx(banner + "3 3 3\n1 1 7\n1 3 5\n2 3 6\n"), expected);
}

TEST(MatrixMarketTest, ReadsCoordinateSkewSymmetric) {
  expect_same_bits(mtx("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 3\n3 1 5\n3 2 -6\n2 2 0\n"),
                   matrix(3, 3, {0, 0, 5, 0, 0, -6, -5, 6, 0}));
}

TEST(MatrixMarketTest, AddsEntriesGivenTwiceInFileOrder) {
  // (1e16 + 1) + 1 rounds to 1e16 twice; 1 + 1 first would give 1e16 + 2
  expect_same_bits(mtx(general_coordinate + "1 2 5\n1 1 1e16\n1 1 1\n1 1 1\n1 2 3\n1 2 -1\n"),
                   matrix(1, 2, {1e16, 2}));
  expect_same_bits(mtx("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 3\n2 1 4\n"),
                   matrix(2, 2, {0, 7, 7, 0}));
}

TEST(MatrixMarketTest, TakesCrlfBlankLinesCommentsTabsAndAnyCase) {
  expect_same_bits(mtx("%%matrixmarket MATRIX Coordinate Real General\r\n% a comment\r\n\r\n  % another\r\n"
                       " 2\t2  1 \r\n\r\n%\r\n\t2 2\t 1.5  \r\n\r\n"),
                   matrix(2, 2, {0, 0, 0, 1.5}));
  expect_same_bits(mtx(general_array + "2 1\n1\n2"), matrix(2, 1, {1, 2}));
  expect_same_bits(mtx(general_array + "2 2\n1 2 3\n4\n"), matrix(2, 2, {1, 2, 3, 4}));
}

TEST(MatrixMarketTest, ReadsEmptyMatrices) {
  expect_same_bits(mtx(general_array + "0 5\n"), matrix(0, 5, {}));
  expect_same_bits(mtx(general_coordinate + "3 0 0\n"), matrix(3, 0, {}));
  expect_same_bits(mtx(general_coordinate + "1 2 0\n"), matrix(1, 2, {0, 0}));
}

TEST(MatrixMarketTest, RoundsNumbersOnce) {
  const double tiny = std::numeric_limits<double>::denorm_min(), largest = std::numeric_limits<double>::max();
  expect_same_bits(mtx(general_array +
                       "1 12\n+1.5\n-0\n4.9406564584124654e-324\n2.4703282292062328e-324\n1e-400\n-1e-400\n"
                       "1.7976931348623157e308\n.5\n5.\n1E+2\n9007199254740993\n"
                       "1.00000000000000011102230246251565404236316680908203125000001\n"),
                   matrix(1, 12,
                          {1.5, -0.0, tiny, tiny, 0.0, -0.0, largest, 0.5, 5.0, 100.0, 9007199254740992.0,
                           1.0000000000000002}));
}

TEST(MatrixMarketTest, TakesInfAndNanAsValues) {
  const DenseMatrix read = mtx(general_array + "1 5\ninf\n-Inf\n+Infinity\nnan\n-NaN\n");
  EXPECT_EQ(read(0, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read(0, 1), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(read(0, 2), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(read(0, 3)));
  EXPECT_TRUE(std::isnan(read(0, 4)));
}

TEST(MatrixMarketTest, ReadsIntegersThatAreExactInDouble) {
  expect_same_bits(mtx("%%MatrixMarket matrix array integer general\n1 4\n+7\n-9007199254740992\n"
                       "1152921504606846976\n-9223372036854775808\n"),
                   matrix(1, 4, {7.0, -0x1p53, 0x1p60, -0x1p63}));
}

// ---- Matrix Market: what is refused, and where
// -------------------------------------------------------------

TEST(MatrixMarketTest, RefusesABadBanner) {
  EXPECT_EQ(mtx_error(""),
            "f.mtx, line 1: expected the banner '%%MatrixMarket matrix ...', got an empty file.");
  EXPECT_EQ(mtx_error("2 2\n1\n"),
            "f.mtx, line 1: expected the banner '%%MatrixMarket matrix ...', got '2 2'.");
  EXPECT_EQ(mtx_error(std::string("\0\xff", 2) + "abc"),
            "f.mtx, line 1: expected the banner '%%MatrixMarket matrix ...', got '\\x00\\xffabc'.");
  EXPECT_EQ(mtx_error(std::string(1000, 'x')),
            "f.mtx, line 1: expected the banner '%%MatrixMarket matrix ...', got '" + std::string(40, 'x') +
                "...'.");
  EXPECT_EQ(mtx_error("%%MatrixMarket vector array real general\n"),
            "f.mtx, line 1: expected the object 'matrix', got 'vector'.");
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix list real general\n"),
            "f.mtx, line 1: expected the format 'array' or 'coordinate', got 'list'.");
  for (const std::string field : {"complex", "pattern", "quaternion"})
    EXPECT_EQ(mtx_error("%%MatrixMarket matrix coordinate " + field + " general\n1 1 1\n1 1\n"),
              "f.mtx, line 1: expected the field 'real' or 'integer', got '" + field + "'.");
  EXPECT_EQ(
      mtx_error("%%MatrixMarket matrix array real hermitian\n"),
      "f.mtx, line 1: expected the symmetry 'general', 'symmetric' or 'skew-symmetric', got 'hermitian'.");
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix array real\n"),
            "f.mtx, line 1: expected the symmetry 'general', 'symmetric' or 'skew-symmetric', got ''.");
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix array real general 3\n"),
            "f.mtx, line 1: expected the end of the banner, got '3'.");
}

TEST(MatrixMarketTest, RefusesBadSizes) {
  const std::string two = "expected two sizes (rows, columns), got ";
  const std::string three = "expected three sizes (rows, columns, entries), got ";
  EXPECT_EQ(mtx_error(general_array), "f.mtx, line 1: " + two + "the end of the file.");
  EXPECT_EQ(mtx_error(general_array + "% only\n\n"), "f.mtx, line 3: " + two + "the end of the file.");
  EXPECT_EQ(mtx_error(general_array + "%\n2\n"), "f.mtx, line 3: " + two + "'2'.");
  EXPECT_EQ(mtx_error(general_array + "2 2 4\n"), "f.mtx, line 2: " + two + "'2 2 4'.");
  EXPECT_EQ(mtx_error(general_array + "2 -2\n"), "f.mtx, line 2: " + two + "'2 -2'.");
  EXPECT_EQ(mtx_error(general_array + "2 2.0\n"), "f.mtx, line 2: " + two + "'2 2.0'.");
  EXPECT_EQ(mtx_error(general_array + "2 +-2\n"), "f.mtx, line 2: " + two + "'2 +-2'.");
  EXPECT_EQ(mtx_error(general_array + "2 99999999999999999999\n"),
            "f.mtx, line 2: " + two + "'2 99999999999999999999'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 2\n1 1 1\n"), "f.mtx, line 2: " + three + "'2 2'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 2 x\n"), "f.mtx, line 2: " + three + "'2 2 x'.");
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n"),
            "f.mtx, line 2: expected as many rows as columns in a symmetric matrix, got 2 x 3.");
}

TEST(MatrixMarketTest, RefusesSizesBeyondMemoryBeforeAllocating) {
  const auto error = [](const std::string& text) {
    return message_of([&] { GemmFiles::read_matrix_market(text, "f.mtx", 1000); });
  };
  const std::string rest = " matrix as a dense array does not fit into the 1000 bytes of memory there are.";
  EXPECT_EQ(error(general_coordinate + "12 11 0\n"), "f.mtx, line 2: a 12 x 11" + rest);
  EXPECT_EQ(error(general_array + "% c\n9223372036854775807 9223372036854775807\n1\n"),
            "f.mtx, line 3: a 9223372036854775807 x 9223372036854775807" + rest);
  EXPECT_EQ(error(general_array + "0 9223372036854775807\n"),
            "f.mtx, line 2: a 0 x 9223372036854775807" + rest);
  EXPECT_EQ(error("%%MatrixMarket matrix array real symmetric\n4294967296 4294967296\n1\n"),
            "f.mtx, line 2: a 4294967296 x 4294967296" + rest);
  EXPECT_EQ(error(general_coordinate + "25 5 0\n"), "no error");
  EXPECT_NE(mtx_error(general_coordinate + "1000000000 1000000000 0\n").find("does not fit into the"),
            std::string::npos);
}

#ifndef __SANITIZE_ADDRESS__  // it ends the program instead of throwing bad_alloc
TEST(MatrixMarketTest, SaysSoWhenAllocationFails) {
  EXPECT_EQ(message_of([] {
              GemmFiles::read_matrix_market(general_coordinate + "1000000000 1000000000 0\n", "f.mtx",
                                            std::numeric_limits<std::size_t>::max());
            }),
            "f.mtx, line 2: a 1000000000 x 1000000000 matrix as a dense array could not be allocated.");
}
#endif

TEST(MatrixMarketTest, AnArrayThatPromisesMoreThanTheFileHoldsAllocatesLittle) {
  // 8 TB of values would be allowed here
  const std::string error = message_of([] {
    GemmFiles::read_matrix_market(general_array + "1000000 1000000\n1\n2\n", "f.mtx",
                                  std::numeric_limits<std::size_t>::max());
  });
  EXPECT_EQ(error, "f.mtx, line 4: expected 1000000000000 values, got the end of the file after 2.");
}

TEST(MatrixMarketTest, RefusesTooFewAndTooManyEntries) {
  EXPECT_EQ(mtx_error(general_array + "2 2\n1\n2\n3\n"),
            "f.mtx, line 5: expected 4 values, got the end of the file after 3.");
  EXPECT_EQ(mtx_error(general_array + "1 1\n1\n\n2\n"),
            "f.mtx, line 5: expected the end of the file after 1 values, got '2'.");
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n4\n"),
            "f.mtx, line 6: expected the end of the file after 3 values, got '4'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 2 2\n1 1 1\n"),
            "f.mtx, line 3: expected 2 entries, got the end of the file after 1.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 2 1\n1 1 1\n2 2 2\n"),
            "f.mtx, line 4: expected the end of the file after 1 entries, got '2 2 2'.");
}

TEST(MatrixMarketTest, RefusesBadEntries) {
  EXPECT_EQ(mtx_error(general_coordinate + "2 3 1\n3 1 1\n"),
            "f.mtx, line 3: expected a row index from 1 to 2, got '3'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 3 1\n0 1 1\n"),
            "f.mtx, line 3: expected a row index from 1 to 2, got '0'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 3 1\n1 4 1\n"),
            "f.mtx, line 3: expected a column index from 1 to 3, got '4'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 3 1\n1 1.5 1\n"),
            "f.mtx, line 3: expected a column index from 1 to 3, got '1.5'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 3 1\n+1-1 1 1\n"),
            "f.mtx, line 3: expected a row index from 1 to 2, got '+1-1'.");
  EXPECT_EQ(mtx_error(general_coordinate + "2 3 1\n99999999999999999999 1 1\n"),
            "f.mtx, line 3: expected a row index from 1 to 2, got '99999999999999999999'.");
  for (const std::string line : {"1", "1 1", "1 1 1 1"})
    EXPECT_EQ(mtx_error(general_coordinate + "2 3 1\n" + line + "\n"),
              "f.mtx, line 3: expected row, column and value, got '" + line + "'.");
}

TEST(MatrixMarketTest, RefusesTokensThatAreNotNumbers) {
  for (const std::string token :
       {"abc", "1.0D+02", "0x10", "1,5", "--1", "+-1", "+", "1e", "1_0", "nan(", "infinit"})
    EXPECT_EQ(mtx_error(general_array + "1 1\n" + token + "\n"),
              "f.mtx, line 3: expected a real number, got '" + token + "'.");
  EXPECT_EQ(mtx_error(general_array + "1 2\n1\n1e309\n"),
            "f.mtx, line 4: expected a number in the range of double precision, got '1e309'.");
  EXPECT_EQ(mtx_error(general_array + "1 2\n1\n-1e99999\n"),
            "f.mtx, line 4: expected a number in the range of double precision, got '-1e99999'.");
  const std::string integers = "%%MatrixMarket matrix array integer general\n1 1\n";
  for (const std::string token : {"1.0", "1e3", "x", "9223372036854775808", "nan", "+1+1"})
    EXPECT_EQ(mtx_error(integers + token + "\n"),
              "f.mtx, line 3: expected an integer of at most 64 bits, got '" + token + "'.");
  for (const std::string token : {"9007199254740993", "9223372036854775807"})
    EXPECT_EQ(mtx_error(integers + token + "\n"),
              "f.mtx, line 3: expected an integer that is exact in double precision, got '" + token + "'.");
}

TEST(MatrixMarketTest, RefusesContradictionsToTheSymmetry) {
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n2 1 1\n1 3 1\n"),
            "f.mtx, line 5: expected entries on one side of the diagonal only in a symmetric matrix, got "
            "entry (1, 3) "
            "after one on the other side in line 4.");
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n1 2 1\n3 2 1\n"),
            "f.mtx, line 4: expected entries on one side of the diagonal only in a skew-symmetric matrix, "
            "got entry "
            "(3, 2) after one on the other side in line 3.");
  EXPECT_EQ(mtx_error("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1\n"),
            "f.mtx, line 3: expected a zero diagonal in a skew-symmetric matrix, got an entry in row and "
            "column 2.");
}

// ---- .npy
// --------------------------------------------------------------------------------------------------

TEST(NpyTest, ReadsBothOrdersAndAllVersions) {
  const DenseMatrix expected = matrix(2, 3, {1, 4, 2, 5, 3, 6});
  const std::string c = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }   \n";
  const std::string fortran = "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }   \n";
  for (const int major : {1, 2, 3}) {
    expect_same_bits(GemmFiles::read_npy(npy_file(c, {1, 2, 3, 4, 5, 6}, major), "f.npy"), expected);
    expect_same_bits(GemmFiles::read_npy(npy_file(fortran, {1, 4, 2, 5, 3, 6}, major), "f.npy"), expected);
  }
  EXPECT_EQ(GemmFiles::read_npy(npy_file(c, {1, 2, 3, 4, 5, 6}, 2), "f.npy").kind,
            "NumPy 2.0 float64, C order");
  EXPECT_EQ(GemmFiles::read_npy(npy_file(fortran, {1, 2, 3, 4, 5, 6}), "f.npy").kind,
            "NumPy 1.0 float64, Fortran order");
}

TEST(NpyTest, TakesKeysInAnyOrderAndEitherQuotes) {
  const DenseMatrix expected = matrix(1, 2, {1, 2});
  for (const std::string header :
       {"{'shape': (1, 2), 'fortran_order': False, 'descr': '<f8'}",
        "{\"shape\":(1,2,),\"descr\":\"<f8\",\"fortran_order\":True}\n",
        " { 'descr' : '<f8' , 'shape' : ( 1L , 2L ) , 'fortran_order' : False , } \n"})
    expect_same_bits(GemmFiles::read_npy(npy_file(header, {1, 2}), "f.npy"), expected);
}

TEST(NpyTest, ReadsEmptyArraysAndKeepsEveryBit) {
  expect_same_bits(
      GemmFiles::read_npy(npy_file("{'descr':'<f8','fortran_order':False,'shape':(0,5)}", {}), "f.npy"),
      matrix(0, 5, {}));
  double strange_nan;
  const std::uint64_t bits = 0xfff0000000000123u;
  std::memcpy(&strange_nan, &bits, sizeof bits);
  const DenseMatrix read = GemmFiles::read_npy(
      npy_file("{'descr':'<f8','fortran_order':False,'shape':(1,2)}", {strange_nan, -0.0}), "f.npy");
  EXPECT_EQ(bits_of(read(0, 0)), bits);
  EXPECT_EQ(bits_of(read(0, 1)), bits_of(-0.0));
}

TEST(NpyTest, RefusesABadPreamble) {
  EXPECT_EQ(npy_error(""), "f.npy, byte 0: expected the magic string '\\x93NUMPY', got ''.");
  EXPECT_EQ(npy_error("PK\x03\x04zipped"),
            "f.npy, byte 0: expected the magic string '\\x93NUMPY', got 'PK\\x03\\x04zi'.");
  EXPECT_EQ(
      npy_error(std::string("\x93NUMPY\x01", 7)),
      "f.npy, byte 7: expected the format version and the length of the header, got the end of the file.");
  EXPECT_EQ(npy_error(std::string("\x93NUMPY\x02\x00\x05\x00", 10)),
            "f.npy, byte 10: expected the length of the header, got the end of the file.");
  EXPECT_EQ(npy_error(std::string("\x93NUMPY\x04\x00\x05\x00", 10)),
            "f.npy, byte 6: expected the format version 1.0, 2.0 or 3.0, got 4.0.");
  EXPECT_EQ(npy_error(std::string("\x93NUMPY\x01\x01\x05\x00", 10)),
            "f.npy, byte 6: expected the format version 1.0, 2.0 or 3.0, got 1.1.");
  EXPECT_EQ(npy_error(std::string("\x93NUMPY\x01\x00\x76\x00{", 11)),
            "f.npy, byte 8: expected a header of 118 bytes, got 1 bytes up to the end of the file.");
  EXPECT_EQ(npy_error(std::string("\x93NUMPY\x03\x00\xff\xff\xff\xff{", 13)),
            "f.npy, byte 8: expected a header of 4294967295 bytes, got 1 bytes up to the end of the file.");
}

TEST(NpyTest, RefusesOtherTypes) {
  const auto error = [](const std::string& descr) {
    return npy_error(
        npy_file("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1, 1), }\n", {1.0}));
  };
  for (const std::string dtype : {">f8", "<f4", "<i8", "|b1", "<c16", "=f8", "f8", "|O"})
    EXPECT_EQ(error("'" + dtype + "'"), "f.npy, byte 20: expected the dtype '<f8', got '" + dtype + "'.");
  EXPECT_EQ(error("[('a', '<f8')]"), "f.npy, byte 20: expected the dtype '<f8', got '[('a', '<f8')]'.");
  EXPECT_EQ(error("8"),
            "f.npy, byte 20: expected the dtype '<f8', got '8, 'fortran_order': False, 'shape': (1, ...'.");
}

TEST(NpyTest, RefusesOtherShapes) {
  const auto error = [](const std::string& shape) {
    return npy_error(
        npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }", {1.0, 2.0}));
  };
  const std::string at = "f.npy, byte 60: ";
  EXPECT_EQ(error("()"), at + "expected a shape of 2 dimensions, got 0.");
  EXPECT_EQ(error("(2,)"), at + "expected a shape of 2 dimensions, got 1.");
  EXPECT_EQ(error("(1, 2, 1)"), at + "expected a shape of 2 dimensions, got 3.");
  EXPECT_EQ(error("(2)"), at + "expected a tuple of extents, got a number in parentheses.");
  EXPECT_EQ(error("2"), at + "expected '(', got '2, }'.");
  EXPECT_EQ(error("(1 2)"), "f.npy, byte 63: expected ',' or ')', got '2), }'.");
  EXPECT_EQ(error("(1, -2)"), "f.npy, byte 64: expected an extent from 0 to 2^63 - 1, got '-2), }'.");
  EXPECT_EQ(error("(1, x)"), "f.npy, byte 64: expected an extent from 0 to 2^63 - 1, got 'x), }'.");
  EXPECT_EQ(error("(1, 9223372036854775808)"),
            "f.npy, byte 64: expected an extent from 0 to 2^63 - 1, got '9223372036854775808), }'.");
  EXPECT_EQ(error("(,)"), "f.npy, byte 61: expected an extent from 0 to 2^63 - 1, got ',), }'.");
  EXPECT_EQ(error("(1, 2"), "f.npy, byte 67: expected an extent from 0 to 2^63 - 1, got '}'.");
}

TEST(NpyTest, RefusesABadDictionary) {
  const auto error = [](const std::string& header) { return npy_error(npy_file(header, {1.0})); };
  const std::string rest = "'fortran_order': False, 'shape': (1, 1)";
  EXPECT_EQ(error(""), "f.npy, byte 10: expected '{', got ''.");
  EXPECT_EQ(error("[]"), "f.npy, byte 10: expected '{', got '[]'.");
  EXPECT_EQ(error("{" + rest + "}"), "f.npy, byte 51: expected the key 'descr', got the end of the header.");
  EXPECT_EQ(error("{'descr': '<f8', 'shape': (1, 1)}"),
            "f.npy, byte 43: expected the key 'fortran_order', got the end of the header.");
  EXPECT_EQ(error("{'descr': '<f8', 'fortran_order': True}\n"),
            "f.npy, byte 50: expected the key 'shape', got the end of the header.");
  EXPECT_EQ(error("{'descr': '<f8', 'descr': '<f8', " + rest + "}"),
            "f.npy, byte 27: expected the key 'descr' once, got it twice.");
  EXPECT_EQ(error("{'extra': 1, 'descr': '<f8', " + rest + "}"),
            "f.npy, byte 11: expected one of the keys 'descr', 'fortran_order' and 'shape', got 'extra'.");
  EXPECT_EQ(error("{descr: 1}"), "f.npy, byte 11: expected a string in quotes, got 'descr: 1}'.");
  EXPECT_EQ(error("{'descr"), "f.npy, byte 11: expected the string to end within the header, got ''descr'.");
  EXPECT_EQ(error("{'descr' '<f8'}"), "f.npy, byte 19: expected ':', got ''<f8'}'.");
  EXPECT_EQ(error("{'descr': '<f8' " + rest + "}"), "f.npy, byte 26: expected '}', got '" + rest + "}'.");
  EXPECT_EQ(error("{'fortran_order': 1}"), "f.npy, byte 28: expected True or False, got '1}'.");
  EXPECT_EQ(error("{'descr': '<f8', " + rest + "} x\n"),
            "f.npy, byte 68: expected the end of the header, got 'x\\x0a'.");
  EXPECT_EQ(error("{'descr': '<f8', " + rest), "f.npy, byte 66: expected '}', got ''.");
}

TEST(NpyTest, RefusesDataOfAnotherSize) {
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n";
  const std::string start = "f.npy, byte 70: expected 32 bytes of data for a 2 x 2 array, got ";
  std::string bytes = npy_file(header, {1, 2, 3, 4});
  EXPECT_EQ(npy_error(bytes + "!"), start + "33.");
  bytes.pop_back();
  EXPECT_EQ(npy_error(bytes), start + "31.");
  EXPECT_EQ(npy_error(npy_file(header, {})), start + "0.");
}

TEST(NpyTest, RefusesSizesBeyondMemory) {
  const auto error = [](const std::string& shape) {
    return message_of([&] {
      GemmFiles::read_npy(npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}", {}),
                          "f.npy", 1000);
    });
  };
  const std::string rest = " matrix as a dense array does not fit into the 1000 bytes of memory there are.";
  EXPECT_EQ(error("(4294967296, 4294967296)"), "f.npy, byte 60: a 4294967296 x 4294967296" + rest);
  EXPECT_EQ(error("(9223372036854775807, 0)"), "f.npy, byte 60: a 9223372036854775807 x 0" + rest);
}

// ---- any bytes
// ---------------------------------------------------------------------------------------------

// Every truncation and every single damaged byte gives a matrix or one FileError, nothing else.
void damage(const std::string& good, const std::function<void(const std::string&)>& read) {
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_NO_FATAL_FAILURE(read(good.substr(0, size)));
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int byte :
         {0x00, 0x0a, 0x20, 0x25, 0x27, 0x28, 0x29, 0x2b, 0x2c, 0x2d, 0x39, 0x65, 0x7d, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(byte);
      read(bad);
    }
}

TEST(MatrixFilesTest, DamagedBytesNeverCrash) {
  int refused = 0;
  const auto one_sentence = [&](const std::function<void()>& read) {
    try {
      read();
    } catch (const FileError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.find('\n'), std::string::npos);
      EXPECT_EQ(what.back(), '.');
      ++refused;
    }
  };
  const std::size_t limit = std::size_t(1) << 20;
  damage("%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 3\n1 1 1.5\n3 1 -2e3\n3 2 nan\n",
         [&](const std::string& bytes) {
           one_sentence([&] { GemmFiles::read_matrix_market(bytes, "f.mtx", limit); });
         });
  damage("%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n", [&](const std::string& bytes) {
    one_sentence([&] { GemmFiles::read_matrix_market(bytes, "f.mtx", limit); });
  });
  for (const int major : {1, 2})
    damage(
        npy_file("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 1), }  \n", {1, 2}, major),
        [&](const std::string& bytes) { one_sentence([&] { GemmFiles::read_npy(bytes, "f.npy", limit); }); });
  EXPECT_GT(refused, 1000);
}

// ---- files
// -------------------------------------------------------------------------------------------------

DenseMatrix difficult_matrix() {
  std::vector<double> values{0.0,
                             -0.0,
                             1.0 / 3.0,
                             -0.1,
                             std::numeric_limits<double>::denorm_min(),
                             -std::numeric_limits<double>::min(),
                             std::nextafter(std::numeric_limits<double>::min(), 0.0),
                             std::numeric_limits<double>::max(),
                             std::numeric_limits<double>::lowest(),
                             9007199254740993e280,
                             1e22,
                             5e-324,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
  std::uint64_t state = 42;
  while (values.size() < 7 * 3001) {  // any bit patterns but NaN; more than one buffer
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t bits = state ^ (state >> 29);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isnan(value)) values.push_back(value);
  }
  return matrix(7, 3001, values);
}

TEST(MatrixFilesTest, WrittenFilesReadBackToTheSameBits) {
  const TemporaryFolder folder;
  const DenseMatrix written = difficult_matrix();
  for (const std::string name : {"a.mtx", "a.npy"}) {
    GemmFiles::write_matrix(folder.file(name), written);
    expect_same_bits(GemmFiles::read_matrix(folder.file(name)), written);
  }
  for (const std::string name : {"e.mtx", "e.npy"}) {
    GemmFiles::write_matrix(folder.file(name), matrix(0, 4, {}));
    expect_same_bits(GemmFiles::read_matrix(folder.file(name)), matrix(0, 4, {}));
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  GemmFiles::write_matrix(folder.file("n.mtx"), matrix(1, 1, {nan}));
  EXPECT_TRUE(std::isnan(GemmFiles::read_matrix(folder.file("n.mtx"))(0, 0)));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.mtx", "a.npy", "e.mtx", "e.npy", "n.mtx"}));
}

TEST(MatrixFilesTest, WritesTheShortestDigitsAndAnAlignedHeader) {
  const TemporaryFolder folder;
  GemmFiles::write_matrix(folder.file("a.mtx"), matrix(2, 2, {0.1, -0.0, 1e300, 5e-324}));
  EXPECT_EQ(bytes_of(folder.file("a.mtx")), general_array + "2 2\n0.1\n-0\n1e+300\n5e-324\n");
  GemmFiles::write_matrix(folder.file("a.npy"), matrix(2, 1, {1.0, 2.0}));
  const std::string bytes = bytes_of(folder.file("a.npy"));
  ASSERT_EQ(bytes.size(), 128u + 16u);
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.substr(10, 59), "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 1), } ");
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_EQ(bytes.substr(128), little_endian(bits_of(1.0), 8) + little_endian(bits_of(2.0), 8));
}

TEST(MatrixFilesTest, ReplacesAnOlderFileAndKeepsItsMode) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.mtx");
  put(path, "old");
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  GemmFiles::write_matrix(path, matrix(1, 1, {1.0}));
  EXPECT_EQ(bytes_of(path), general_array + "1 1\n1\n");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0640));
}

TEST(MatrixFilesTest, TellsFormatsApartByContentThenByName) {
  const TemporaryFolder folder;
  GemmFiles::write_matrix(folder.file("a.npy"), matrix(1, 2, {1.0, 2.0}));
  std::filesystem::rename(folder.file("a.npy"), folder.file("a.dat"));
  expect_same_bits(GemmFiles::read_matrix(folder.file("a.dat")), matrix(1, 2, {1.0, 2.0}));
  put(folder.file("b.npy"), general_array + "1 1\n3\n");
  expect_same_bits(GemmFiles::read_matrix(folder.file("b.npy")), matrix(1, 1, {3.0}));
  put(folder.file("c.npy"), "rubbish");
  EXPECT_EQ(message_of([&] { GemmFiles::read_matrix(folder.file("c.npy")); }),
            folder.file("c.npy") + ", byte 0: expected the magic string '\\x93NUMPY', got 'rubbis'.");
  put(folder.file("d"), "rubbish");
  EXPECT_EQ(message_of([&] { GemmFiles::read_matrix(folder.file("d")); }),
            folder.file("d") + ", line 1: expected the banner '%%MatrixMarket matrix ...', got 'rubbish'.");
}

TEST(MatrixFilesTest, SaysWhatTheSystemReported) {
  const TemporaryFolder folder;
  const std::string missing = folder.file("missing.mtx"), nowhere = folder.file("no/such/a.npy");
  EXPECT_EQ(message_of([&] { GemmFiles::read_matrix(missing); }),
            missing + ": cannot be opened: No such file or directory.");
  EXPECT_EQ(message_of([&] { GemmFiles::read_matrix(folder.file("")); }),
            folder.file("") + ": cannot be read: Is a directory.");
  EXPECT_EQ(message_of([&] { GemmFiles::write_matrix(nowhere, matrix(1, 1, {1.0})); }),
            nowhere + ": cannot be written: No such file or directory.");
  for (const std::string name : {"a.txt", "a", ".mtx", "a.MTX", "a.npz"})
    EXPECT_EQ(message_of([&] { GemmFiles::write_matrix(name, matrix(1, 1, {1.0})); }),
              name + ": expected a name that ends in .mtx or .npy for the product.");
  std::filesystem::create_directory(folder.file("a.npy"));
  EXPECT_EQ(message_of([&] { GemmFiles::write_matrix(folder.file("a.npy"), matrix(1, 1, {1.0})); }),
            folder.file("a.npy") + ": cannot be written: Is a directory.");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.npy"});
}

TEST(MatrixFilesTest, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  put(path, "old");
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 100000;  // less than the matrix: like a full disk in the middle of the file
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string error = message_of([&] { GemmFiles::write_matrix(path, difficult_matrix()); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_EQ(error, path + ": cannot be written: File too large.");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.npy"});
  EXPECT_EQ(bytes_of(path), "old");
}

TEST(MatrixFilesTest, ASignalLeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.mtx");
  const DenseMatrix large = matrix(1000, 4000, std::vector<double>(4000000, 1.0 / 3.0));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (;;) GemmFiles::write_matrix(path, large);
  }
  // Wait until a temporary file is being written.
  bool writing = false;
  for (int attempt = 0; attempt < 20000 && !writing; ++attempt) {
    for (const std::string& name : folder.names()) {
      std::error_code ignored;
      const auto size = std::filesystem::file_size(folder.file(name), ignored);
      writing =
          writing || (name.find(".partial-") != std::string::npos && !ignored && size > 0 && size < 40000000);
    }
    ::usleep(1000);
  }
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(writing);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  for (const std::string& name : folder.names()) EXPECT_EQ(name, "a.mtx");
}

#ifdef KOKKOSOZAKI_EXAMPLE_DATA_DIR
TEST(MatrixFilesTest, ReadsTheDataOfTheExamples) {
  const std::string folder = KOKKOSOZAKI_EXAMPLE_DATA_DIR "/";
  const DenseMatrix laplacian = GemmFiles::read_matrix(folder + "laplacian2d.mtx");
  ASSERT_EQ(laplacian.rows, 144);
  ASSERT_EQ(laplacian.cols, 144);
  EXPECT_EQ(laplacian(0, 0), 676.0);
  EXPECT_EQ(laplacian(0, 12), -169.0);
  EXPECT_EQ(laplacian(12, 0), -169.0);
  EXPECT_EQ(laplacian(11, 12), 0.0);
  const DenseMatrix powers = GemmFiles::read_matrix(folder + "vandermonde.npy");
  ASSERT_EQ(powers.rows, 144);
  ASSERT_EQ(powers.cols, 20);
  EXPECT_EQ(powers(143, 3), 3.375);
  const DenseMatrix hilbert = GemmFiles::read_matrix(folder + "hilbert.mtx");
  ASSERT_EQ(hilbert.rows, 64);
  EXPECT_EQ(hilbert(5, 3), 1.0 / 9.0);
  EXPECT_EQ(hilbert(3, 5), 1.0 / 9.0);
  const DenseMatrix decades = GemmFiles::read_matrix(folder + "decades.npy");
  ASSERT_EQ(decades.rows, 64);
  ASSERT_EQ(decades.cols, 48);
  const DenseMatrix incidence = GemmFiles::read_matrix(folder + "incidence.mtx");
  ASSERT_EQ(incidence.rows, 264);
  ASSERT_EQ(incidence.cols, 144);
  for (std::int64_t i = 0; i < incidence.rows; ++i) {
    double sum = 0.0, magnitude = 0.0;
    for (std::int64_t j = 0; j < incidence.cols; ++j) {
      sum += incidence(i, j);
      magnitude += std::abs(incidence(i, j));
    }
    EXPECT_EQ(sum, 0.0);
    EXPECT_EQ(magnitude, 2.0);
  }
}
#endif

}  // namespace
