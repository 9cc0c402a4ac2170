// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_HostKernels.hpp"
#include "KokkosOzaki_config.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace KokkosOzaki::Impl {
namespace {

struct CpuFeatures {
  bool avx2 = false, avxvnni = false, avx512vnni = false, amx = false;
};

#if defined(__x86_64__)

constexpr bool has_bit(unsigned word, int bit) {
  return ((word >> bit) & 1U) != 0;
}

// Register state that the operating system saves, XCR0.
std::uint64_t enabled_state() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// Linux hands out the 8 KiB of tile registers on request only, for the whole process.
[[maybe_unused]] bool request_amx_tiles() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long arch_req_xcomp_perm = 0x1023, xfeature_xtiledata = 18;
  return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xfeature_xtiledata) == 0;
#else
  return false;
#endif
}

// A set needs every extension that its translation unit is compiled for, used by an intrinsic or not.
CpuFeatures detect_cpu() {
  CpuFeatures cpu;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return cpu;
  const bool osxsave = has_bit(ecx, 27), avx = has_bit(ecx, 28), fma = has_bit(ecx, 12);
  if (!osxsave || !avx) return cpu;

  constexpr std::uint64_t ymm_state = 0x6, zmm_state = 0xe6, tile_state = 0x60000;
  const std::uint64_t state = enabled_state();
  const bool ymm = (state & ymm_state) == ymm_state, zmm = (state & zmm_state) == zmm_state;
  if (!ymm || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return cpu;
  const unsigned subleaves = eax;
  const bool avx512 =
      zmm && has_bit(ebx, 16) && has_bit(ebx, 17) && has_bit(ebx, 30) && has_bit(ebx, 31);  // F, DQ, BW, VL
  const bool vbmi = has_bit(ecx, 1);
  const bool tiles = (state & tile_state) == tile_state && has_bit(edx, 24) && has_bit(edx, 25);
  cpu.avx2 = fma && has_bit(ebx, 5);
  cpu.avx512vnni = avx512 && has_bit(ecx, 11);
#if defined(KOKKOSOZAKI_HAVE_AMX)
  cpu.amx = tiles && avx512 && vbmi && request_amx_tiles();
#else
  static_cast<void>(tiles && vbmi);
#endif
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx))
    cpu.avxvnni = cpu.avx2 && has_bit(eax, 4);
  return cpu;
}

#else

CpuFeatures detect_cpu() {
  return {};
}

#endif

struct UsableSets {
  HostKernelSet sets[5];
  int count = 0;

  UsableSets() {
    const CpuFeatures cpu = detect_cpu();
    static_cast<void>(cpu);
#if defined(KOKKOSOZAKI_HAVE_AMX)
    if (cpu.amx) sets[count++] = {"host-amx", multiply_tile_amx, 128, 512};
#endif
#if defined(KOKKOSOZAKI_HAVE_AVX512VNNI)
    if (cpu.avx512vnni) sets[count++] = {"host-avx512vnni", multiply_tile_avx512vnni, 192, 512};
#endif
#if defined(KOKKOSOZAKI_HAVE_AVXVNNI)
    if (cpu.avxvnni) sets[count++] = {"host-avxvnni", multiply_tile_avxvnni, 192, 256};
#endif
#if defined(KOKKOSOZAKI_HAVE_AVX2)
    if (cpu.avx2) sets[count++] = {"host-avx2", multiply_tile_avx2, 128, 256};
#endif
    sets[count++] = {"host-portable", multiply_tile_portable, 64, 256};
  }
};

const UsableSets& usable_sets() {
  static const UsableSets sets;
  return sets;
}

}  // namespace

int host_kernel_set_count() {
  return usable_sets().count;
}

const HostKernelSet& host_kernel_set(int index) {
  return usable_sets().sets[index];
}

const HostKernelSet* find_host_kernel_set(const char* name) {
  const UsableSets& usable = usable_sets();
  for (int index = 0; index < usable.count; ++index)
    if (name == nullptr || std::strcmp(name, usable.sets[index].name) == 0) return &usable.sets[index];
  return nullptr;
}

}  // namespace KokkosOzaki::Impl
