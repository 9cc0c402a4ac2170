#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits a source tree of Kokkos 3.4.1 so that nvcc 13 compiles it for sm_90.

Usage: kokkos_for_cuda13.py <folder of Kokkos>

CUDA 13 changed three functions of its runtime, dropped the architectures that this Kokkos takes as its default, and turns away
two uses of the half-precision types. Stops if a place that is to be edited is not there.
"""
import pathlib
import re
import sys


def edit(path, *replacements):
    text = path.read_text()
    for old, new in replacements:
        changed = re.sub(old, new, text)
        if changed == text:
            sys.exit(f"{path}: found nothing to edit for {old!r}; is this Kokkos 3.4.1?")
        text = changed
    path.write_text(text)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    edit(root / "bin/nvcc_wrapper",
         (r'default_arch="sm_35"', 'default_arch="sm_90"'),
         (r"--std=c\+\+17\|-std=c\+\+17\)", "--std=c++17|-std=c++17|--std=c++20|-std=c++20)"))
    edit(root / "cmake/kokkos_arch.cmake", (r"CHECK_CUDA_ARCH\(AMPERE80  sm_80\)", "CHECK_CUDA_ARCH(AMPERE80  sm_90)"))
    cuda = root / "core/src/Cuda"
    edit(cuda / "Kokkos_Cuda_Graph_Impl.hpp",
         (r"cudaGraphInstantiate\(&m_graph_exec, m_graph, &error_node,\s*error_log, error_log_size\)",
          "cudaGraphInstantiate(&m_graph_exec, m_graph, 0)"),
         (r"constexpr size_t error_log_size = 256;\s*cudaGraphNode_t error_node\s*= nullptr;\s*char error_log\[error_log_size\];", ""),
         (r"&pred_cuda_node, &cuda_node, 1\)", "&pred_cuda_node, &cuda_node, nullptr, 1)"))
    edit(root / "core/src/Cuda/Kokkos_CudaSpace.cpp",
         (r"cudaMemPrefetchAsync\(ptr, bytes, space\.cuda_device\(\),",
          "cudaMemPrefetchAsync(ptr, bytes, cudaMemLocation{cudaMemLocationTypeDevice, space.cuda_device()}, 0,"))
    edit(cuda / "Kokkos_Cuda_Half.hpp",
         (r"__half2double\(", "__half2float("),
         (r"return (__half2[a-z_]+)\(val\)", r"return \1(half_t::impl_type(val))"))


if __name__ == "__main__":
    main()
