#include "cli/console.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace dtrain {

namespace {

/// Receives warnings while the console is muted. Must be set before other threads print.
std::function<void(std::string_view)> warning_of_muted;
std::atomic<bool> muted{false};

/// The warnings that were printed, for was_printed().
struct Warnings {
  std::mutex mutex;
  std::set<std::string, std::less<>> printed;
};
std::atomic<Warnings*> remembered{nullptr};  // null: warnings are not remembered

void remember(std::string_view warning) {
  if (Warnings* const warnings = remembered) {
    const std::lock_guard lock(warnings->mutex);
    warnings->printed.emplace(warning);
  }
}

constexpr const char *kRed = "31", *kYellow = "33";

/// Prints with a single call and without allocating memory, because memory may have run out. If
/// stderr_is_lively(), the message replaces a progress bar on the current line (progress.cpp). Ignores write
/// errors: a lost message must not end a run.
void print_message(std::string_view kind, const char* color, std::string_view message) {
  if (muted) return;
  const std::string escaped = is_visible(message) ? "" : visible(message);
  if (!escaped.empty()) message = escaped;
  const auto length = [](std::string_view text) { return static_cast<int>(text.size()); };
  const bool on_bar = stderr_is_lively(), lively = !kind.empty() && on_bar;
  std::fprintf(stderr, "%s%s%s%s%.*s%s%s%.*s\n", on_bar ? "\r\x1b[K" : "", lively ? "\x1b[1;" : "",
               lively ? color : "", lively ? "m" : "", length(kind), kind.data(),
               kind.empty() ? ""
               : lively     ? ":\x1b[0m"
                            : ":",
               kind.empty() ? "" : " ", length(message), message.data());
}

}  // namespace

bool print_text(std::string_view text) {
  return print_bytes(visible(text));
}

bool print_data(std::string_view text) {
  return ::isatty(STDOUT_FILENO) == 1 ? print_text(text) : print_bytes(text);
}

bool print_bytes(std::string_view bytes) {
  if (muted) return true;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0)
    return true;
  if (errno == EPIPE) return false;
  throw Error(fmt::format("cannot write to standard output: {}", std::generic_category().message(errno)));
}

void print_json(const Json& document) {
  print_bytes(document.dump(2) + "\n");
}

void print_note(std::string_view message) {
  print_message("", "", message);
}

void print_warning(std::string_view message) {
  if (muted) warning_of_muted(message);
  remember(message);
  print_message("warning", kYellow, message);
}

void print_warnings(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (muted) warning_of_muted(line);
    remember(line);
    print_message("", "", line);
  }
}

void print_error(std::string_view message) {
  static std::atomic<bool> printed{false};
  if (printed.exchange(true)) return;
  const bool says_error = message.starts_with("error: ") || message.find(": error: ") != std::string::npos;
  print_message(says_error ? "" : "error", kRed, message);
}

void mute_console(std::function<void(std::string_view warning)> on_warning) {
  warning_of_muted = std::move(on_warning);
  muted = true;
}

bool console_is_muted() {
  return muted;
}

void remember_warnings() {
  static Warnings only;
  remembered = &only;
}

bool was_printed(std::string_view warning) {
  Warnings* const warnings = remembered;
  if (!warnings) return false;
  const std::lock_guard lock(warnings->mutex);
  return warnings->printed.find(warning) != warnings->printed.end();
}

bool stderr_is_lively() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return stderr_is_terminal() && !(no_color && *no_color) && !(term && std::string_view(term) == "dumb");
}

bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

size_t terminal_width() {
  winsize size{};
  constexpr size_t kUsual = 80;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace dtrain
