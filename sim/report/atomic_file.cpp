#include "report/atomic_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"

namespace servesim {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

/// Follows links, so that a rename replaces the file they lead to and not the link.
std::string resolve_links(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), buffer_(kBufferBytes) {
  if (path_.empty()) throw InputError("an output path is empty");
  const std::string target = resolve_links(path_);
  struct stat info {};
  const bool exists = stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    file_ = std::fopen(target.c_str(), "wb");
    if (file_ == nullptr) fail(errno);
  } else {
    if (exists && access(target.c_str(), W_OK) != 0) fail(errno);
    open_temporary(target);
    path_ = target;
  }
  std::setvbuf(file_, buffer_.data(), _IOFBF, buffer_.size());
}

/// Under a name that nobody has: a process of the same number (in a container, of every run) may
/// have been killed and have left one.
void AtomicFile::open_temporary(const std::string& target) {
  constexpr int kMostLeft = 1000;
  for (int left = 0; file_ == nullptr; ++left) {
    const std::string name = fmt::format("{}.{}.{}.tmp", target, getpid(), left);
    file_ = std::fopen(name.c_str(), "wbx");
    if (file_ != nullptr) {
      temporary_ = name;
    } else if (errno != EEXIST || left == kMostLeft) {
      fail(errno);
    }
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void AtomicFile::fail(int error) const {
  throw InputError(fmt::format("{}: cannot be written: {}", path_, std::strerror(error)));
}

void AtomicFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(errno);
}

void AtomicFile::close() {
  if (file_ == nullptr) return;
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (closed != 0) fail(errno);
}

void AtomicFile::commit() {
  close();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

}  // namespace servesim
