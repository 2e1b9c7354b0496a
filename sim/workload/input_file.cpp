#include "workload/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/error.hpp"

namespace servesim {
namespace {

InputError system_error(std::string_view name, std::string_view what) {
  return InputError(fmt::format("{}: {}: {}", name, what, std::strerror(errno)));
}

/// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int descriptor, const char* data, std::size_t size, std::string_view name) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw system_error(name, "cannot be spooled to a temporary file");
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

Compression detect_compression(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return Compression::kGzip;
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return Compression::kZstd;
  if (bytes.starts_with(std::string_view("\xfd"
                                         "7zXZ\0",
                                         6))) {
    return Compression::kXz;
  }
  return Compression::kNone;
}

}  // namespace

std::shared_ptr<const InputFile> InputFile::open(const std::string& path) {
  if (path == "-") return spool(STDIN_FILENO, "<stdin>");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw system_error(path, "cannot be read");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw system_error(path, "cannot be read");
  if (S_ISDIR(status.st_mode)) {
    throw InputError(fmt::format("{}: is a directory; a trace file is accepted", path));
  }
  if (!S_ISREG(status.st_mode)) return spool(file.get(), path);
  return std::shared_ptr<const InputFile>(new InputFile(file.get(), path));
}

std::shared_ptr<const InputFile> InputFile::spool(int descriptor, std::string name) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  if (!file) throw system_error(name, "cannot be spooled to a temporary file");
  const int target = ::fileno(file.get());
  std::vector<char> buffer(std::size_t{1} << 18);
  while (true) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error(name, "cannot be read");
    if (got == 0) break;
    write_all(target, buffer.data(), static_cast<std::size_t>(got), name);
  }
  return std::shared_ptr<const InputFile>(new InputFile(target, std::move(name)));
}

InputFile::InputFile(int descriptor, std::string name) : name_(std::move(name)) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw system_error(name_, "cannot be read");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) throw InputError(fmt::format("{}: is empty; a trace is expected", name_));
  // Anonymous pages first, the file over them: the padding past its end is then always readable.
  mapped_ = size_ + kPadding;
  void* base = ::mmap(nullptr, mapped_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw system_error(name_, "cannot be mapped");
  data_ = static_cast<const char*>(base);
  if (::mmap(base, size_, PROT_READ, MAP_PRIVATE | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    const InputError error = system_error(name_, "cannot be mapped");
    ::munmap(base, mapped_);
    throw error;
  }
  ::madvise(base, size_, MADV_SEQUENTIAL);
  compression_ = detect_compression(bytes());
}

InputFile::~InputFile() {
  ::munmap(const_cast<char*>(data_), mapped_);
}

}  // namespace servesim
