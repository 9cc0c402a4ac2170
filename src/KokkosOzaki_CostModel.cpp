// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "impl/KokkosOzaki_CostModel.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <locale>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

#include "impl/KokkosOzaki_Planes.hpp"

namespace KokkosOzaki::Impl {

double ProductSize::padded_multiplications() const {
  return double_of(entries) * double_of(round_up(m, vector_padding)) *
         double_of(round_up(n, vector_padding)) * double_of(round_up(k, k_padding));
}

double CostModel::native_seconds(const ProductSize& size) const {
  return native_call + std::max(native_multiplication * size.multiplications(),
                                native_entry * (size.inputs() + size.outputs()));
}

double CostModel::emulated_seconds(const ProductSize& size, int num_moduli) const {
  return emulated_call + num_moduli * (int8_multiplication * size.padded_multiplications() +
                                       input * size.inputs() + output * size.outputs());
}

double CostModel::selection_seconds(const ProductSize& size) const {
  // Quantised vectors, an INT8 product over an eighth of the positions, one look at each of its entries, a wait:
  // measured on an H200 (docs/performance.md, "Choosing the number of moduli").
  constexpr double of_output = 8;  // moduli that an entry of C costs the same for
  return emulated_call + int8_multiplication * size.padded_multiplications() / 8 + input * size.inputs() +
         of_output * output * size.outputs();
}

namespace {

struct BuiltIn {
  const char* key;
  CostModel model;
};

/// As measured (docs/performance.md, "Native or emulated"), the second number 2.5 % larger: the model then errs on neither
/// side where the methods are equally fast.
const BuiltIn built_in[] = {{"NVIDIA H200; Cuda; double; cublas; wgmma",
                             {1.05e-5, 3.32e-14, 1.44e-12, 4.05e-5, 5.86e-16, 1.21e-12, 1.74e-12, 1.39e-10}}};

constexpr const char* separator = " = ";

std::string file_name() {
  if (const char* name = std::getenv("KOKKOSOZAKI_COST_FILE"); name != nullptr && *name != '\0') return name;
  std::string folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    folder = cache;
  else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    folder = std::string(home) + "/.cache";
  return folder.empty() ? folder : folder + "/kokkosozaki/costs.txt";
}

std::vector<std::string> lines_of(const std::string& name) {
  std::vector<std::string> lines;
  std::ifstream file(name);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool is_line_of(const std::string& line, const std::string& key) {
  const std::string start = key + separator;
  return line.compare(0, start.size(), start) == 0;
}

std::optional<CostModel> parse(const std::string& line, const std::string& key) {
  if (!is_line_of(line, key)) return std::nullopt;
  std::istringstream numbers(line.substr(key.size() + 3));
  numbers.imbue(std::locale::classic());
  std::array<double, CostModel::count> values{};
  for (double& value : values)
    if (!(numbers >> value) || !std::isfinite(value) || value < 0) return std::nullopt;
  std::string rest;
  if (numbers >> rest) return std::nullopt;
  return CostModel::of(values);
}

/// The whole file anew beside the old one, then in its place: a reader sees the one or the other.
void write(const std::string& name, const std::string& key, const CostModel& model) {
  if (name.empty()) return;
  std::error_code error;
  const std::filesystem::path path(name);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  std::vector<std::string> lines = lines_of(name);
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [&](const std::string& line) { return is_line_of(line, key); }),
              lines.end());
  if (lines.empty())
    lines.push_back(
        "# KokkosOzaki: seconds that products take, for Method::automatic. Delete a line to measure again. "
        "key = native: call, multiplication, entry; emulated: call, INT8 multiplication, input, output (each "
        "modulus), exact multiplication");
  std::ostringstream line;
  line.imbue(std::locale::classic());
  line << key << separator << std::setprecision(4);
  const auto values = model.values();
  for (std::size_t i = 0; i < values.size(); ++i) line << (i == 0 ? "" : " ") << values[i];
  lines.push_back(line.str());
  const std::string part = name + "." + std::to_string(getpid());
  std::ofstream file(part);
  for (const std::string& text : lines) file << text << '\n';
  file.close();
  if (file)
    std::filesystem::rename(part, name, error);
  else
    std::filesystem::remove(part, error);
}

/// Of this process.
std::map<std::string, CostModel>& known() {
  static auto* const models = new std::map<std::string, CostModel>;
  return *models;
}
std::mutex& lock() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

/// Under the lock.
const CostModel* find(const std::string& key) {
  if (const auto model = known().find(key); model != known().end()) return &model->second;
  for (const std::string& line : lines_of(file_name()))
    if (const auto model = parse(line, key)) return &(known()[key] = *model);
  for (const BuiltIn& entry : built_in)
    if (key == entry.key) return &(known()[key] = entry.model);
  return nullptr;
}

}  // namespace

CostModel cost_model(const std::string& key, const std::function<CostModel()>& measure) {
  const std::lock_guard<std::mutex> guard(lock());
  if (const CostModel* model = find(key)) return *model;
  const CostModel model = measure();
  known()[key] = model;
  write(file_name(), key, model);
  return model;
}

bool cost_model_is_known(const std::string& key) {
  const std::lock_guard<std::mutex> guard(lock());
  return find(key) != nullptr;
}

std::string cpu_name() {
  for (const std::string& line : lines_of("/proc/cpuinfo"))
    if (line.compare(0, 10, "model name") == 0) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return "CPU";
}

}  // namespace KokkosOzaki::Impl
