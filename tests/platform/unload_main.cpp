/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Loads modules that define the same types, one after another, into one living world, and unloads each after the next one
 * has redefined its types. The memory of an unloaded module becomes inaccessible. Then the world goes on: frames on
 * several threads, changes, waiting commands and events, reactions, prefabs, an archive, a history. */
#include <quern/quern.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(_WIN32)
#include <windows.h>

#include <psapi.h>
#else
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#endif

namespace {

void expect_at(bool is_right, const char *what, int line)
{
    if (is_right) return;
    std::printf("line %d: %s: %s\n", line, what, quern_error_message());
    std::exit(EXIT_FAILURE);
}

#define EXPECT(...) expect_at((__VA_ARGS__), #__VA_ARGS__, __LINE__)
#define MUST(...)   EXPECT((__VA_ARGS__) == QUERN_OK)

/* A loaded module, and the memory that its segments are in. */
struct module {
    void *handle = nullptr;
    const char *path = nullptr;
    uintptr_t first = UINTPTR_MAX, end = 0;
    int (*enter)(quern_world *) = nullptr;
    int (*fill)(quern_world *, int) = nullptr;
};

template <typename F> void find_function(void *handle, const char *name, F *out);

#if defined(_WIN32)

void open_library(module *it)
{
    it->handle = reinterpret_cast<void *>(LoadLibraryA(it->path));
    MODULEINFO info;
    EXPECT(it->handle != nullptr);
    EXPECT(
        K32GetModuleInformation(GetCurrentProcess(), static_cast<HMODULE>(it->handle), &info, sizeof info));
    it->first = reinterpret_cast<uintptr_t>(info.lpBaseOfDll);
    it->end = it->first + info.SizeOfImage;
}

template <typename F> void find_function(void *handle, const char *name, F *out)
{
    const FARPROC address = GetProcAddress(static_cast<HMODULE>(handle), name);
    EXPECT(address != nullptr);
    std::memcpy(out, &address, sizeof address);
}

/* Unloads a module. Whatever still has an address in it ends the program. */
void unload(const module &it)
{
    EXPECT(FreeLibrary(static_cast<HMODULE>(it.handle)));
    EXPECT(GetModuleHandleA(it.path) == nullptr);
    void *memory =
        VirtualAlloc(reinterpret_cast<void *>(it.first), it.end - it.first, MEM_RESERVE, PAGE_NOACCESS);
    EXPECT(memory == reinterpret_cast<void *>(it.first));
}

#else

int find_segments(dl_phdr_info *info, size_t, void *argument)
{
    module *it = static_cast<module *>(argument);
    if (std::strcmp(info->dlpi_name, it->path) != 0) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        const uintptr_t first = info->dlpi_addr + segment.p_vaddr, end = first + segment.p_memsz;
        if (first < it->first) it->first = first;
        if (end > it->end) it->end = end;
    }
    return 1;
}

template <typename F> void find_function(void *handle, const char *name, F *out)
{
    void *address = dlsym(handle, name);
    EXPECT(address != nullptr);
    std::memcpy(out, &address, sizeof address);
}

void open_library(module *it)
{
    it->handle = dlopen(it->path, RTLD_NOW | RTLD_LOCAL);
    if (it->handle == nullptr) std::printf("%s\n", dlerror());
    EXPECT(it->handle != nullptr);
    EXPECT(dl_iterate_phdr(find_segments, it) == 1);
}

/* Unloads a module. Whatever still has an address in it ends the program by a signal. */
void unload(const module &it)
{
    const uintptr_t page = 4096, first = it.first & ~(page - 1), end = (it.end + page - 1) & ~(page - 1);
    EXPECT(dlclose(it.handle) == 0);
    EXPECT(dlopen(it.path, RTLD_NOW | RTLD_NOLOAD) == nullptr);
    void *memory = mmap(reinterpret_cast<void *>(first), end - first, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    EXPECT(memory == reinterpret_cast<void *>(first));
}

#endif

module load(const char *path)
{
    module it;
    it.path = path;
    open_library(&it);
    find_function(it.handle, "module_enter", &it.enter);
    find_function(it.handle, "module_fill", &it.fill);
    return it;
}

quern_world *world;
quern_component name, hull;

void touch(quern_context *, const quern_view *view)
{
    (void)quern_view_write(view, 0); /* notes a write of all rows */
}

/* Records commands with the values of the view, which the hooks copy on the threads of the pool. */
void copy_names(quern_context *context, const quern_view *view)
{
    const char *values = static_cast<const char *>(quern_view_read(view, 0));
    uint32_t size_bytes;
    MUST(quern_component_get_size(world, name, &size_bytes));
    for (uint32_t i = 0; i < view->count; i += 7)
        MUST(quern_commands_set(quern_context_commands(context), view->entities[i], name,
                                values + static_cast<size_t>(i) * size_bytes));
}

void see_removed(quern_context *, const quern_view *view)
{
    EXPECT(quern_view_read(view, 0) != nullptr);
}

size_t read_texts(quern_type_kind kind)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < quern_type_count(world, kind); i++) {
        quern_type_info info;
        MUST(quern_type_at(world, kind, i, &info));
        bytes += std::strlen(info.name) + std::strlen(info.type_name);
        for (uint32_t f = 0; f < info.field_count; f++) {
            bytes += std::strlen(info.fields[f].name);
            if (info.fields[f].unit != nullptr) bytes += std::strlen(info.fields[f].unit);
            for (const quern_named_value *value = info.fields[f].values;
                 value != nullptr && value->name != nullptr; value++)
                bytes += std::strlen(value->name);
        }
    }
    return bytes;
}

uint32_t list_entities(quern_query *query, quern_entity *list, uint32_t capacity)
{
    uint32_t count = 0;
    quern_query_iterator iterator = quern_query_iterate(query);
    while (quern_query_next(&iterator))
        for (uint32_t i = 0; i < iterator.view.count && count < capacity; i++)
            list[count++] = iterator.view.entities[i];
    return count;
}

} // namespace

int main(int argument_count, char **arguments)
{
    EXPECT(argument_count == 4);
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_history *history;
    quern_prefab prefab = {};
    quern_query *query;
    quern_event_reader *readers[2];
    quern_jobs_def jobs_def = {};
    jobs_def.thread_count = 3;
    MUST(quern_world_create(nullptr, &world));
    MUST(quern_jobs_create(&jobs_def, &jobs));
    MUST(quern_schedule_create(world, nullptr, &schedule));
    module present = load(arguments[1]);
    EXPECT(present.enter(world) == 0);
    name = quern_component_find(world, "game::Name");
    hull = quern_component_find(world, "Hull");

    quern_system_def system = {};
    system.name = "touch";
    system.run = touch;
    system.terms[0] = quern_term_write(hull);
    MUST(quern_schedule_add_system(schedule, &system, nullptr));
    system = {};
    system.name = "copy";
    system.run = copy_names;
    system.terms[0] = quern_term_read(name);
    MUST(quern_schedule_add_system(schedule, &system, nullptr));
    system = {};
    system.name = "removed";
    system.run = see_removed;
    system.terms[0] = quern_term_read(name);
    system.reacts_to = QUERN_REACT_REMOVED;
    MUST(quern_schedule_add_system(schedule, &system, nullptr));

    quern_query_def query_def = {};
    query_def.terms[0] = quern_term_read(name);
    MUST(quern_query_create(world, &query_def, &query));
    const char *const events[] = {"game::Said", "Hit"};
    for (int i = 0; i < 2; i++) {
        quern_event_reader_def def = {};
        def.event = quern_event_find(world, events[i]);
        MUST(quern_event_reader_create(world, &def, &readers[i]));
    }
    quern_history_def history_def = {};
    history_def.schedules[0] = schedule;
    MUST(quern_history_create(world, &history_def, &history));
    MUST(quern_schedule_run(schedule, jobs, 0.01));

    static quern_entity list[4096];
    for (int version = 1; version <= 3; version++) {
        if (version > 1) {
            /* Values of the last version wait: commands only if the layout stays. Frames of the history have the
             * layout of the last version. */
            EXPECT(present.fill(world, version == 2) == 0);
            const uint32_t count = list_entities(query, list, 4096);
            EXPECT(count > 10);
            if (version == 2) MUST(quern_prefab_capture(world, list[0], &prefab));
            if (version == 3) MUST(quern_world_flush(world));
            MUST(quern_entity_destroy(world, list[1])); /* the reaction has not seen it yet */
            if (version == 3) MUST(quern_schedule_run(schedule, jobs, 0.01));
            const module next = load(arguments[version]);
            EXPECT(next.enter(world) == 0);
            unload(present);
            present = next;
            if (version == 2) MUST(quern_history_restore(history, 1, jobs));
        }
        EXPECT(read_texts(QUERN_TYPE_COMPONENT) + read_texts(QUERN_TYPE_EVENT) +
                   read_texts(QUERN_TYPE_RESOURCE) >
               50);
        EXPECT(present.fill(world, 1) == 0);
        MUST(quern_world_flush(world));
        for (int frame = 0; frame < 3; frame++)
            MUST(quern_schedule_run(schedule, jobs, 0.01));
        for (quern_event_reader *reader : readers) {
            quern_event_block block;
            while (quern_event_reader_next(reader, &block))
                EXPECT(block.count > 0);
        }
        const uint32_t count = list_entities(query, list, 4096);
        for (uint32_t i = 0; i < count; i += 3)
            MUST(quern_entity_destroy(world, list[i]));
        quern_entity instance;
        if (version > 1) MUST(quern_prefab_spawn(world, prefab, nullptr, &instance));
        MUST(quern_schedule_run(schedule, jobs, 0.01));

        quern_byte_buffer bytes = {};
        quern_save_def save = {};
        save.leave_out[0] = name; /* strings */
        (void)quern_world_save(world, quern_sink_bytes(&bytes), &save);
        quern_byte_buffer_release(&bytes);
        MUST(quern_history_save(history, 1, jobs));
        (void)quern_world_hash(world);
        MUST(quern_world_validate(world));
    }
    quern_history_destroy(history);
    for (quern_event_reader *reader : readers)
        quern_event_reader_destroy(reader);
    quern_query_destroy(query);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    unload(present);
    quern_jobs_destroy(jobs); /* its threads end after all modules */
    std::puts("all modules were unloaded");
    return EXIT_SUCCESS;
}
