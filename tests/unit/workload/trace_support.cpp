#include "unit/workload/trace_support.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "core/error.hpp"

namespace servesim::test {

TempFile::TempFile(std::string_view content, const std::string& name) {
  folder_ = (std::filesystem::temp_directory_path() / "servesim_test_XXXXXX").string();
  if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = folder_ + "/" + name;
  std::ofstream(path_, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

TempFile::~TempFile() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::vector<Request> read_all(TraceReader& reader) {
  std::vector<Request> requests;
  Request request;
  while (reader.next(request)) requests.push_back(request);
  return requests;
}

std::vector<Request> requests_of(std::string_view content, const TraceOptions& options) {
  const TempFile file(content);
  return read_all(*TraceSource(file.path(), options).open());
}

std::string detected(std::string_view content) {
  const TempFile file(content);
  return TraceSource(file.path()).format();
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(std::string_view content, const TraceOptions& options) {
  const TempFile file(content);
  std::string message = error_of([&] { TraceSource(file.path(), options); });
  const std::string folder = std::filesystem::path(file.path()).parent_path().string() + "/";
  const std::size_t found = message.find(folder);
  if (found != std::string::npos) message.erase(found, folder.size());
  return message;
}

TraceOptions format(std::string name) {
  TraceOptions options;
  options.format = std::move(name);
  return options;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace servesim::test
