// Counts instructions of a GPU's machine code: `sass_census FILE` prints a line a kernel; FILE is a
// cubin, or an object whose device code is not compressed (nvcc -no-compress). CI asks it whether
// loads are 16 bytes wide and tensor cores are used, where the toolkit has no cuobjdump.
// Instructions of Volta and later have 128 bits, the opcode in the low 9.
#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<char>;

template <class T>
T at(const Bytes& file, std::size_t offset) {
  T value{};
  if (offset + sizeof(T) <= file.size()) std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

/// The first ELF file of a GPU within `file`, to its end; empty when there is none.
Bytes gpu_code(const Bytes& file) {
  constexpr Elf64_Half kCudaMachine = 190;  // EM_CUDA
  for (std::size_t i = 0; i + sizeof(Elf64_Ehdr) <= file.size(); i += 8) {
    const auto header = at<Elf64_Ehdr>(file, i);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == kCudaMachine) {
      return {file.begin() + static_cast<std::ptrdiff_t>(i), file.end()};
    }
  }
  return {};
}

/// The width of a global load or store in bytes: bits 73 to 75 of the instruction.
int access_bytes(std::uint64_t high) {
  switch (high >> 9 & 7) {
    case 4:
      return 4;
    case 5:
      return 8;
    case 6:
      return 16;
    default:
      return 1;  // bytes and halves
  }
}

std::string name_of(std::uint64_t low, std::uint64_t high) {
  switch (low & 0x1ff) {
    case 0x181:
      return "LDG." + std::to_string(8 * access_bytes(high));
    case 0x186:
      return "STG." + std::to_string(8 * access_bytes(high));
    case 0x1ae:
      return "LDGSTS";
    case 0x03c:
      return "HMMA";
    case 0x03b:
      return "LDSM";
    default:
      return {};
  }
}

void count(const Bytes& file, const std::string& kernel, const Elf64_Shdr& section) {
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i + 16 <= section.sh_size; i += 16) {
    const auto low = at<std::uint64_t>(file, section.sh_offset + i);
    const auto high = at<std::uint64_t>(file, section.sh_offset + i + 8);
    const std::string name = name_of(low, high);
    if (!name.empty()) ++counts[name];
  }
  std::printf("%s", kernel.c_str());
  for (const auto& [name, n] : counts) std::printf(" %s=%d", name.c_str(), n);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sass_census FILE\n");
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  const Bytes whole{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const Bytes file = gpu_code(whole);
  if (file.empty()) {
    std::fprintf(stderr, "%s: no uncompressed GPU code\n", argv[1]);
    return 2;
  }
  const auto header = at<Elf64_Ehdr>(file, 0);
  const auto section = [&](std::size_t i) {
    return at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    std::string name;
    for (std::size_t c = names.sh_offset + s.sh_name; c < file.size() && file[c] != '\0'; ++c)
      name += file[c];
    const std::string prefix = ".text.";
    if (name.rfind(prefix, 0) == 0) count(file, name.substr(prefix.size()), s);
  }
  return 0;
}
