// Operators of one thread, as PyTorch itself announces them: start, end and name of each go into a buffer that the
// Python side empties after every iteration. Compiled against the headers of the torch that runs it; see operators.py.
//
// The callback is a thread-local one: only such a one may come and go while other threads compute. So all of this
// belongs to the thread that called operators_begin, and nothing here needs a lock.

#include <ATen/record_function.h>

#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Record {
  int64_t start;  // CLOCK_MONOTONIC, ns
  int64_t end;
  int32_t name;
};

// A row of the table "ranges", as a ring holds it.
#pragma pack(push, 1)
struct Row {
  int64_t start;
  int64_t end;
  int64_t thread;
  int32_t name;
  int8_t kind;
  int32_t domain;
};
#pragma pack(pop)

struct Open {
  const at::RecordFunction* function;
  int64_t start;
};

struct Capture {
  std::vector<Record> records;
  std::vector<Row> rows;
  std::vector<Open> open;
  std::vector<std::string> names;
  // Operators are registered once, so the address of a name stands for the name, but a library can be unloaded and
  // another take its place: the text is compared as well.
  std::unordered_map<const char*, int32_t> known;
  int64_t lost = 0;
  at::CallbackHandle handle = 0;
};

thread_local Capture capture;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{1000000000} * time.tv_sec + time.tv_nsec;
}

// In a library that is loaded late each mention of `capture` is a call, so these take it once.
int32_t name_of(Capture& mine, const at::RecordFunction& function) {
  const char* text = function.name();
  auto found = mine.known.find(text);
  if (found != mine.known.end() && mine.names[found->second] == text) {
    return found->second;
  }
  auto number = static_cast<int32_t>(mine.names.size());
  mine.names.emplace_back(text);
  mine.known[text] = number;
  return number;
}

std::unique_ptr<at::ObserverContext> started(const at::RecordFunction& function) {
  capture.open.push_back({&function, now()});
  return nullptr;
}

void ended(const at::RecordFunction& function, at::ObserverContext*) {
  const int64_t end = now();
  Capture& mine = capture;
  // What began before the capture did is not on the stack; what never ended lies above and is dropped.
  for (size_t at = mine.open.size(); at-- > 0;) {
    if (mine.open[at].function != &function) {
      continue;
    }
    const int64_t start = mine.open[at].start;
    mine.lost += static_cast<int64_t>(mine.open.size() - at) - 1;
    mine.open.resize(at);
    if (mine.records.size() == mine.records.capacity()) {
      mine.lost++;  // Full: the newest are dropped, the workload never waits.
    } else {
      mine.records.push_back({start, end, name_of(mine, function)});
    }
    return;
  }
}

}  // namespace

extern "C" {

// Begin to record the operators of the calling thread; 0, or -1 when there is no memory for `limit` records.
int operators_begin(int64_t limit) {
  try {
    capture.records.clear();
    capture.records.reserve(static_cast<size_t>(limit));
    capture.rows.reserve(static_cast<size_t>(limit));
    capture.open.clear();
    if (capture.handle == 0) {
      capture.handle = at::addThreadLocalCallback(
          at::RecordFunctionCallback(&started, &ended).scopes({at::RecordScope::FUNCTION}));
    }
    return 0;
  } catch (...) {
    return -1;
  }
}

// Stop; the records of this thread stay until the next begin. The result is their number.
int64_t operators_end() {
  if (capture.handle != 0) {
    at::removeCallback(capture.handle);
    capture.handle = 0;
  }
  capture.lost += static_cast<int64_t>(capture.open.size());
  capture.open.clear();
  return static_cast<int64_t>(capture.records.size());
}

int64_t operators_row_size() { return sizeof(Row); }

// The records as rows, in the order in which they ended. `names` are the ring's ids of the names here.
const void* operators_rows(const int32_t* names, int64_t thread, int32_t kind, int32_t domain) {
  capture.rows.clear();
  for (const Record& record : capture.records) {
    capture.rows.push_back(
        {record.start, record.end, thread, names[record.name], static_cast<int8_t>(kind), domain});
  }
  return capture.rows.data();
}

int64_t operators_lost() { return capture.lost; }

int32_t operators_names() { return static_cast<int32_t>(capture.names.size()); }

const char* operators_name(int32_t number) { return capture.names[static_cast<size_t>(number)].c_str(); }
}
