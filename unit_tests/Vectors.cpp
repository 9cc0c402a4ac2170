// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Vectors.hpp"

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace KokkosOzaki::Testing {

namespace {

using nlohmann::json;

double number(const json& hex) {
  const std::string text = hex.get<std::string>();
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) throw std::runtime_error("not a number: " + text);
  return x;
}

template <int Parts, class T, class Convert>
Entry<Parts, T> entry(const json& value, const Convert& convert) {
  if constexpr (Parts == 1)
    return convert(value);
  else
    return {convert(value.at(0)), convert(value.at(1))};
}

template <int Parts, class T, class Convert>
Rows<Entry<Parts, T>> rows(const json& values, const Convert& convert) {
  Rows<Entry<Parts, T>> result;
  for (const json& row : values) {
    result.emplace_back();
    for (const json& value : row) result.back().push_back(entry<Parts, T>(value, convert));
  }
  return result;
}

template <int Parts>
Rows<Entry<Parts, double>> numbers(const json& values) {
  return rows<Parts, double>(values, number);
}

template <int Parts>
Rows<Entry<Parts, mpz_class>> integers(const json& values) {
  return rows<Parts, mpz_class>(values,
                                [](const json& value) { return mpz_class(value.get<std::string>()); });
}

template <int Parts>
std::vector<Rows<Entry<Parts, int>>> planes(const json& values) {
  return values.get<std::vector<Rows<Entry<Parts, int>>>>();
}

std::vector<VectorStatistics> statistics(const json& values) {
  using Kind = VectorStatistics::Kind;
  std::vector<VectorStatistics> result;
  for (const json& value : values) {
    if (value.is_null())
      result.push_back({Kind::zero, 0, 0, 0});
    else if (value.is_string())
      result.push_back({Kind::flagged, 0, 0, 0});
    else
      result.push_back({Kind::regular, value.at(0).get<std::int32_t>(), value.at(1).get<std::uint64_t>(),
                        value.at(2).get<std::uint64_t>()});
  }
  return result;
}

template <int Parts>
GemmVectorOf<Parts> read_case(const json& in) {
  GemmVectorOf<Parts> v{};
  v.name = in.at("name").get<std::string>();
  const auto type = in.at("type").get<std::string>();
  v.is_single = type == "f32" || type == "c32";
  v.num_moduli = in.at("s").get<int>();
  v.accurate = in.at("mode").get<std::string>() == "accurate";
  v.toward_zero = in.value("toward_zero", false);
  v.conj_a = in.value("conj_A", false);
  v.conj_b = in.value("conj_B", false);
  v.m = in.at("m").get<std::int64_t>();
  v.n = in.at("n").get<std::int64_t>();
  v.k = in.at("k").get<std::int64_t>();
  v.alpha = entry<Parts, double>(in.at("alpha"), number);
  v.beta = entry<Parts, double>(in.at("beta"), number);
  v.a = numbers<Parts>(in.at("opA_rows"));
  v.b = numbers<Parts>(in.at("opB_cols"));
  if (in.contains("C_in")) v.c_in = numbers<Parts>(in.at("C_in"));
  v.c = numbers<Parts>(in.at("C"));

  v.has_stages = in.contains("X");
  if (v.has_stages) {
    v.stat_a = statistics(in.at("stat_A"));
    v.stat_b = statistics(in.at("stat_B"));
    in.at("exp_A").get_to(v.alpha_a);
    in.at("exp_B").get_to(v.alpha_b);
    v.takes_candidates = in.at("branch").get<std::string>() == "positional";
    v.x = integers<Parts>(in.at("X"));
  }
  v.has_candidates = in.contains("R_A");
  if (v.has_candidates) {
    in.at("R_A").get_to(v.maxima_a);
    in.at("R_B").get_to(v.maxima_b);
    in.at("cand_A").get_to(v.candidate_a);
    in.at("cand_B").get_to(v.candidate_b);
    in.at("fast_A").get_to(v.fast_a);
    in.at("fast_B").get_to(v.fast_b);
  }
  v.has_residues = in.contains("resA");
  if (v.has_residues) {
    v.integer_a = integers<Parts>(in.at("intA"));
    v.integer_b = integers<Parts>(in.at("intB"));
    v.residue_a = planes<Parts>(in.at("resA"));
    v.residue_b = planes<Parts>(in.at("resB"));
    v.y = planes<Parts>(in.at("Y"));
  }
  v.k_block = in.value("k_block", std::int64_t{0});
  if (v.k_block != 0)
    for (const json& block : in.at("Y_blocks")) v.y_blocks.push_back(planes<Parts>(block));
  return v;
}

template <class T>
Rows<T> turned(const Rows<T>& x) {
  Rows<T> result(x.empty() ? 0 : x.front().size());
  for (const auto& row : x)
    for (std::size_t j = 0; j < row.size(); ++j) result[j].push_back(row[j]);
  return result;
}

template <class T>
std::vector<Rows<T>> turned(std::vector<Rows<T>> x) {
  for (auto& plane : x) plane = turned(plane);
  return x;
}

/// The cases of these files that have a type of the list.
template <int Parts>
std::vector<GemmVectorOf<Parts>> read_cases(std::initializer_list<const char*> files,
                                            std::initializer_list<const char*> types) {
  std::vector<GemmVectorOf<Parts>> all;
  for (const char* name : files)
    for (const json& in : read_vectors_file(name))
      for (const char* type : types)
        if (in.at("type") == type) {
          all.push_back(read_case<Parts>(in));
          all.push_back(all.back().transposed());
        }
  return all;
}

}  // namespace

template <int Parts>
GemmVectorOf<Parts> GemmVectorOf<Parts>::transposed() const {
  GemmVectorOf t = *this;
  t.name += "_transposed";
  std::swap(t.m, t.n);
  std::swap(t.a, t.b);
  std::swap(t.conj_a, t.conj_b);
  std::swap(t.stat_a, t.stat_b);
  std::swap(t.alpha_a, t.alpha_b);
  std::swap(t.maxima_a, t.maxima_b);
  std::swap(t.candidate_a, t.candidate_b);
  std::swap(t.fast_a, t.fast_b);
  std::swap(t.integer_a, t.integer_b);
  std::swap(t.residue_a, t.residue_b);
  t.c_in = turned(c_in);
  t.c = turned(c);
  t.x = turned(x);
  t.y = turned(y);
  for (auto& block : t.y_blocks) block = turned(block);
  return t;
}

template struct GemmVectorOf<1>;
template struct GemmVectorOf<2>;

nlohmann::json read_vectors_file(const std::string& name) {
  const char* folder = std::getenv("KOKKOSOZAKI_TEST_VECTORS_DIR");  // where the tests were built elsewhere
  const std::string path =
      std::string(folder != nullptr ? folder : KOKKOSOZAKI_TEST_VECTORS_DIR) + "/" + name + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  return json::parse(file);
}

const std::vector<GemmVector>& f64_vectors() {
  static const std::vector<GemmVector> vectors = read_cases<1>({"random", "edge"}, {"f64"});
  return vectors;
}

const std::vector<GemmVector>& f32_vectors() {
  static const std::vector<GemmVector> vectors = read_cases<1>({"f32"}, {"f32"});
  return vectors;
}

const std::vector<ComplexGemmVector>& complex_vectors() {
  static const std::vector<ComplexGemmVector> vectors = read_cases<2>({"complex"}, {"c64", "c32"});
  return vectors;
}

}  // namespace KokkosOzaki::Testing
