/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TASKS_HPP
#define QUERN_TASKS_HPP

/** @file
 * Tasks, forks and graphs on a pool of threads (<quern/jobs.h>, <quern/graph.h>), from lambdas that own what they capture:
 *
 *     quern::tasks tasks(jobs);
 *     quern::must(tasks.submit([text = std::move(text)] { write(text); }));
 *     quern::must(tasks.wait()); */

#include <quern/quern.hpp>

#include <atomic>

namespace quern {

/* ------------------------------------------------------------------------------------------- options */

/** Name of a task or loop in traces and descriptions. It is not copied. */
struct task_name {
    const char *name; /**< The name. */
};
/** When a task or loop begins; see quern_priority. */
struct priority {
    quern_priority value; /**< The priority. */
};
/** The thread of a task; see quern_job_def.on_worker. */
struct on_worker {
    uint32_t value; /**< Index of the worker + 1, or QUERN_ON_CALLER. */
};
/** Runs a task on a thread that waits in a call of the pool. */
inline constexpr on_worker on_caller{QUERN_ON_CALLER};

class tasks;
/** Begins a task, a loop or the run of a graph when the other tasks have finished, up to QUERN_MAX_AFTER groups. */
template <std::size_t count> struct after_tasks {
    quern_counter *counters[count]; /**< The counters of the groups. */
    /** Waits for these groups. */
    template <typename... T> explicit after_tasks(T &...groups);
};
/** Deduces the number of groups. */
template <typename... T> after_tasks(T &...) -> after_tasks<sizeof...(T)>;

/** @cond internal */
namespace detail {

template <typename Def> auto apply_task(const task_name &option, Def *def) -> decltype((void)def->name)
{
    def->name = option.name;
}
template <typename Def> auto apply_task(const priority &option, Def *def) -> decltype((void)def->priority)
{
    def->priority = option.value;
}
template <typename Def> auto apply_task(const on_worker &option, Def *def) -> decltype((void)def->on_worker)
{
    def->on_worker = option.value;
}
template <std::size_t count, typename Def>
auto apply_task(const after_tasks<count> &option, Def *def) -> decltype((void)def->after)
{
    def->after = option.counters;
    def->after_count = static_cast<uint32_t>(count);
}
template <typename O, typename Def, typename = void> inline constexpr bool is_task_option = false;
template <typename O, typename Def>
inline constexpr bool is_task_option<
    O, Def,
    std::void_t<decltype(detail::apply_task(std::declval<const O &>(), static_cast<Def *>(nullptr)))>> =
    true;
template <typename Def, typename... Options>
inline constexpr bool are_task_options = (is_task_option<Options, Def> && ... && true);
/* Applies options to a definition. */
template <typename Def, typename... Options>
void apply_task_options([[maybe_unused]] Def *def, const Options &...options)
{
    static_assert(are_task_options<Def, Options...>,
                  "quern: the options of tasks are quern::task_name, quern::priority, quern::on_worker and "
                  "quern::after_tasks; loops have no worker, and runs of graphs only quern::after_tasks");
    if constexpr (are_task_options<Def, Options...>)
        (detail::apply_task(options, def), ...);
    else
        ((void)options, ...);
}

/* Calls a lambda for the items begin to end - 1. */
template <typename F>
inline constexpr bool is_range_call =
    std::is_invocable<F &, uint32_t, uint32_t, uint32_t>::value ||
    std::is_invocable<F &, uint32_t, uint32_t>::value || std::is_invocable<F &>::value;
template <typename F>
void call_range(void *f, [[maybe_unused]] uint32_t begin, [[maybe_unused]] uint32_t end,
                [[maybe_unused]] uint32_t worker_index) noexcept
{
    static_assert(
        is_range_call<F>,
        "quern: the function of a loop has the parameters (uint32_t begin, uint32_t end), and behind "
        "them (uint32_t worker_index), if you like; that of a node may have none");
    F &call = *static_cast<F *>(f);
    if constexpr (std::is_invocable<F &, uint32_t, uint32_t, uint32_t>::value)
        call(begin, end, worker_index);
    else if constexpr (std::is_invocable<F &, uint32_t, uint32_t>::value)
        call(begin, end);
    else if constexpr (std::is_invocable<F &>::value)
        call();
}

/* A lambda on the heap, in a list of those that belong to an object. */
class kept_call {
  public:
    kept_call() = default;
    kept_call(const kept_call &) = delete;
    kept_call &operator=(const kept_call &) = delete;
    virtual ~kept_call() = default;

    kept_call *next = nullptr;
};
template <typename F> class kept_lambda : public kept_call {
  public:
    explicit kept_lambda(F &&f) { new (static_cast<void *>(bytes_)) F(std::move(f)); }
    explicit kept_lambda(const F &f) { new (static_cast<void *>(bytes_)) F(f); }
    ~kept_lambda() override { release(); }
    F *get() { return std::launder(reinterpret_cast<F *>(bytes_)); }
    /* Destroys what the lambda has captured. */
    void release()
    {
        if (!is_released_) get()->~F();
        is_released_ = true;
    }

  private:
    bool is_released_ = false;
    alignas(F) unsigned char bytes_[sizeof(F)];
};

/* Owns lambdas. A vector of pointers would cost every program a tenth of the time in which this header compiles. */
class kept_list {
  public:
    kept_list() = default;
    kept_list(kept_list &&other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
    kept_list &operator=(kept_list &&other) noexcept
    {
        std::swap(first_, other.first_);
        return *this;
    }
    ~kept_list() { clear(); }
    void push(kept_call *call)
    {
        call->next = first_;
        first_ = call;
    }
    void pop()
    {
        kept_call *const call = first_;
        first_ = call->next;
        delete call;
    }
    void clear()
    {
        while (first_ != nullptr)
            pop();
    }

    /* Leaves the lambdas where they are, as they may be called. */
    void abandon() { first_ = nullptr; }

  private:
    kept_call *first_ = nullptr;
};

inline quern_result no_room_for_lambda(const char *call)
{
    return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY,
                           "%s: out of memory: the lambda could not be stored; nothing was submitted",
                           call);
}

} // namespace detail
/** @endcond */

/* --------------------------------------------------------------------------------------------- tasks */

/** A group of tasks of a pool. Its destructor waits for them, so the lambdas may refer to what was declared before the group.
 * Declare it after its pool. One thread uses the group: it submits, waits, and destroys. Tasks of the group may submit to it,
 * too, and any thread may cancel it. */
class tasks {
  public:
    /** Creates an empty group. */
    explicit tasks(const jobs &pool) : jobs_(pool), ends_(pool.ends_on_failure()) {}
    /** Creates an empty group for a pool of the C interface, such as that of a quern::context. */
    explicit tasks(quern_jobs *pool) : jobs_(pool) {}
    tasks(const tasks &) = delete;
    tasks &operator=(const tasks &) = delete;
    /** Waits for the tasks. */
    ~tasks()
    {
        if (quern_counter_is_done(&counter_) || quern_jobs_wait(jobs_, &counter_) == QUERN_OK) forget();
    }
    /** Returns the counter of the C interface. */
    operator quern_counter *() { return &counter_; }

    /** Submits a task, a lambda `f()` or `f(worker_index)`, and returns, usually immediately. The lambda is moved, or copied
     * if it is no temporary, and destroyed when it has run or the group ends; its memory is kept as that of submit_for. A lambda of at most 24 bytes that is
     * trivially copyable needs no memory. Options: task_name, priority, on_worker, on_caller, after_tasks. Errors: as
     * quern_jobs_submit. */
    template <typename F, typename... Options>
    QUERN__CPP_NODISCARD quern_result submit(F &&f, const Options &...options)
    {
        using type = std::decay_t<F>;
        constexpr bool can_call =
            std::is_invocable<type &>::value || std::is_invocable<type &, uint32_t>::value;
        static_assert(can_call,
                      "quern: a task is a function without parameters, or with (uint32_t worker_index)");
        constexpr bool can_keep = std::is_constructible<type, F>::value;
        static_assert(can_keep, "quern: this lambda cannot be copied: pass it by std::move");
        if constexpr (can_call && can_keep) {
            quern_job_def def{};
            define<quern_job_def>(&def, options...);
            if constexpr (std::is_trivially_copyable<type>::value && sizeof(type) <= 24 &&
                          alignof(type) <= 8) {
                const type copy(std::forward<F>(f));
                def.payload = &copy;
                def.payload_bytes = static_cast<uint32_t>(sizeof(type));
                def.function = [](void *payload, uint32_t worker_index) noexcept {
                    call(*static_cast<type *>(payload), worker_index);
                };
                return check(quern_jobs_submit(jobs_, &def));
            } else {
                using kept = detail::kept_lambda<type>;
                kept *const lambda = new (std::nothrow) kept(std::forward<F>(f));
                if (lambda == nullptr) return check(detail::no_room_for_lambda("quern::tasks::submit"));
                keep(lambda);
                def.payload = &lambda;
                def.payload_bytes = sizeof lambda;
                def.function = [](void *payload, uint32_t worker_index) noexcept {
                    kept *const own = *static_cast<kept **>(payload);
                    call(*own->get(), worker_index);
                    own->release();
                };
                const quern_result result = quern_jobs_submit(jobs_, &def);
                if (result != QUERN_OK) lambda->release();
                return check(result);
            }
        } else {
            return QUERN_ERROR_INVALID_ARGUMENT; /* does not compile */
        }
    }
    /** Submits a loop, a lambda `f(begin, end)` or `f(begin, end, worker_index)` for ranges of 0 to count - 1, and returns.
     * It must not change what it captures, except at its own indices. The lambda, with what it captures, is kept until a
     * wait(), wait_for() or wait_any() returns that all tasks of the group have finished, or the group ends. grain: maximum
     * number of items per call; 0: chosen by the pool. Options: task_name, priority, after_tasks. Errors: as
     * quern_jobs_submit_loop. */
    template <typename F, typename... Options>
    QUERN__CPP_NODISCARD quern_result submit_for(uint32_t count, uint32_t grain, F &&f,
                                                 const Options &...options)
    {
        constexpr bool can_keep = std::is_constructible<std::decay_t<F>, F>::value;
        static_assert(can_keep, "quern: this lambda cannot be copied: pass it by std::move");
        if constexpr (can_keep) {
            using kept = detail::kept_lambda<std::decay_t<F>>;
            quern_loop_def def{};
            define<quern_loop_def>(&def, options...);
            kept *const lambda = new (std::nothrow) kept(std::forward<F>(f));
            if (lambda == nullptr) return check(detail::no_room_for_lambda("quern::tasks::submit_for"));
            keep(lambda);
            def.count = count;
            def.grain = grain;
            def.function = detail::call_range<std::decay_t<F>>;
            def.user_data = lambda->get();
            return check(quern_jobs_submit_loop(jobs_, &def));
        } else {
            return QUERN_ERROR_INVALID_ARGUMENT; /* does not compile */
        }
    }
    /** Runs a loop like quern::jobs::parallel_for, which cancel() ends. Errors: as quern_jobs_run_loop; CANCELLED. */
    template <typename F>
    QUERN__CPP_NODISCARD quern_result run_for(uint32_t count, uint32_t grain, F &&f,
                                              const task_name &name = {nullptr})
    {
        quern_loop_def def{};
        def.count = count;
        def.grain = grain;
        def.cancel = &cancel_;
        def.name = name.name;
        auto &&call = detail::callable(f);
        def.function = detail::call_range<std::remove_reference_t<decltype(call)>>;
        def.user_data = detail::address_of_call(call);
        return check(quern_jobs_run_loop(jobs_, &def));
    }
    /** Waits until all tasks have finished, and helps; see quern_jobs_wait. */
    QUERN__CPP_NODISCARD quern_result wait()
    {
        const quern_result result = check(quern_jobs_wait(jobs_, &counter_));
        if (result == QUERN_OK) forget();
        return result;
    }
    /** Waits at most limit_ns nanoseconds, and stores whether all tasks have finished; see quern_jobs_wait_for. */
    QUERN__CPP_NODISCARD quern_result wait_for(uint64_t limit_ns, bool *out_done)
    {
        const quern_result result = quern_jobs_wait_for(jobs_, &counter_, limit_ns, out_done);
        if (result == QUERN_OK && *out_done) forget();
        return check(result);
    }
    /** Waits until all tasks of one of the groups have finished, and stores its index; see quern_jobs_wait_any. */
    template <typename... T>
    QUERN__CPP_NODISCARD static quern_result wait_any(uint64_t limit_ns, uint32_t *out_index, tasks &first,
                                                      T &...others)
    {
        tasks *const groups[] = {&first, &others...};
        quern_counter *const counters[] = {first, others...};
        uint32_t index = sizeof...(T) + 1;
        const quern_result result =
            quern_jobs_wait_any(first.jobs_, counters, sizeof...(T) + 1, limit_ns, &index);
        if (out_index != nullptr) *out_index = index;
        if (result == QUERN_OK && index <= sizeof...(T)) groups[index]->forget();
        return first.check(result);
    }
    /** Returns whether all tasks have finished. Does not help, and keeps the lambdas of loops until a call that waits or the
     * end of the group; see quern_counter_is_done. */
    bool is_done() const { return quern_counter_is_done(&counter_); }
    /** Requests that no further task begins, and no further range of a loop; see quern_cancel_request. */
    void cancel() { quern_cancel_request(&cancel_); }
    /** Returns whether the group was cancelled: long tasks ask, and return. */
    bool is_cancelled() const { return quern_cancel_is_requested(&cancel_); }
    /** Makes a cancelled group, of which all tasks have finished, usable again; see quern_cancel_reset. */
    void reset() { quern_cancel_reset(&cancel_); }
    /** Keeps the group from finishing until release() is called; see quern_counter_hold. */
    void hold() { quern_counter_hold(&counter_); }
    /** Ends a hold; see quern_counter_release. */
    QUERN__CPP_NODISCARD quern_result release() { return check(quern_counter_release(jobs_, &counter_)); }

  private:
    friend class graph;

    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }
    template <typename F> static void call(F &f, [[maybe_unused]] uint32_t worker_index)
    {
        if constexpr (std::is_invocable<F &>::value)
            f();
        else
            f(worker_index);
    }
    template <typename Def, typename... Options> void define(Def *def, const Options &...options)
    {
        def->counter = &counter_;
        def->cancel = &cancel_;
        detail::apply_task_options(def, options...);
    }
    /* Tasks of the group may submit at the same time. Relaxed: the list is read after a wait for all of them. */
    void keep(detail::kept_call *lambda)
    {
        lambda->next = kept_.load(std::memory_order_relaxed);
        while (!kept_.compare_exchange_weak(lambda->next, lambda, std::memory_order_relaxed)) {
        }
    }
    void forget()
    {
        for (detail::kept_call *lambda = kept_.exchange(nullptr, std::memory_order_relaxed);
             lambda != nullptr;) {
            detail::kept_call *const next = lambda->next;
            delete lambda;
            lambda = next;
        }
    }

    quern_jobs *jobs_;
    bool ends_ = false;
    quern_counter counter_{};
    quern_cancel cancel_{};
    std::atomic<detail::kept_call *> kept_{nullptr};
};

template <std::size_t count>
template <typename... T>
after_tasks<count>::after_tasks(T &...groups) : counters{static_cast<quern_counter *>(groups)...}
{
    static_assert((std::is_same<T, tasks>::value && ...),
                  "quern: after_tasks names groups of type quern::tasks");
    static_assert(count <= QUERN_MAX_AFTER, "quern: too many groups in after_tasks");
}

/* --------------------------------------------------------------------------------------------- forks */

/** A call that another thread may take over, inside a job: `quern::fork left(jobs, [&] { sort(first, middle); });`. Its
 * destructor joins it. The lambda stays where it is. See quern_jobs_fork. */
template <typename F> class fork {
    static_assert(std::is_invocable<F &>::value, "quern: a forked function has no parameters");

  public:
    /** Offers the call to other threads; makes it if there is no room for more offers, or outside of jobs. */
    fork(quern_jobs *pool, F f) : jobs_(pool), f_(std::move(f))
    {
        is_joined_ = quern_jobs_fork(pool, &fork_, run, this) != QUERN_OK;
        if (is_joined_) f_();
    }
    fork(const fork &) = delete;
    fork &operator=(const fork &) = delete;
    /** Joins the call. */
    ~fork() { join(); }
    /** Makes the call if no other thread has begun it, otherwise waits for it; see quern_jobs_join. */
    void join()
    {
        if (!is_joined_) (void)quern_jobs_join(jobs_, &fork_);
        is_joined_ = true;
    }

  private:
    static void run(void *own, uint32_t) noexcept { static_cast<fork *>(own)->f_(); }

    quern_jobs *jobs_;
    F f_;
    quern_fork fork_{};
    bool is_joined_ = false;
};

/* -------------------------------------------------------------------------------------------- graphs */

/** A graph of parallel loops, built once and run many times; see <quern/graph.h>. It owns the lambdas of its nodes:
 *
 *     quern::graph graph;
 *     const uint32_t read = graph.add([&] { ... }), sum = graph.add([&](uint32_t begin, uint32_t end) { ... }, 1000);
 *     quern::must(graph.edge(read, sum));
 *     quern::must(graph.run(jobs)); */
class graph : public detail::owner<quern_graph, quern_graph_destroy> {
  public:
    /** Result of add if a node could not be added. */
    static constexpr uint32_t no_node = UINT32_MAX;

    /** Creates an empty graph. */
    graph() : owner(false) { (void)check(quern_graph_create(nullptr, &raw_)); }
    /** Takes over what another object owns, which must not be running. */
    graph(graph &&) = default;
    /** Destroys what the object had, and takes over what the other one owns. Neither may be running. */
    graph &operator=(graph &&other) noexcept
    {
        if (this != &other) {
            if (is_running()) kept_.abandon();
            owner::operator=(std::move(other));
            kept_ = std::move(other.kept_);
        }
        return *this;
    }
    /** Destroys the graph. One that is running is refused and stays, with its lambdas; see quern_graph_destroy. */
    ~graph()
    {
        if (is_running()) kept_.abandon();
    }
    /** Adds a node of `count` items, a lambda `f()`, `f(begin, end)` or `f(begin, end, worker_index)`, and returns its
     * number; no_node on failure. grain and options: as for loops. See quern_graph_add_node. */
    template <typename F, typename... Options>
    uint32_t add(F &&f, uint32_t count = 1, uint32_t grain = 0, const Options &...options)
    {
        quern_graph_node_def def{};
        def.function = detail::call_range<std::decay_t<F>>;
        def.count = count > 0 ? count : 1;
        def.grain = grain;
        const uint32_t node = add_kept(&def, std::forward<F>(f), options...);
        if (node != no_node && count == 0) (void)set_count(node, 0);
        return node;
    }
    /** Adds a node that chooses the edge which is followed: `uint32_t f()` returns its number. limit: maximum number of
     * choices in one run; 0: 2^31. */
    template <typename F, typename... Options>
    uint32_t add_choice(F &&f, uint32_t limit = 0, const Options &...options)
    {
        using type = std::decay_t<F>;
        constexpr bool is_right = std::is_invocable_r<uint32_t, type &>::value;
        static_assert(
            is_right,
            "quern: a choice is a function without parameters that returns the number of an edge");
        if constexpr (is_right) {
            quern_graph_node_def def{};
            def.choose = [](void *own, uint32_t) noexcept -> uint32_t {
                return (*static_cast<type *>(own))();
            };
            def.choice_limit = limit;
            return add_kept(&def, std::forward<F>(f), options...);
        } else {
            return no_node; /* does not compile */
        }
    }
    /** Adds a node that runs another graph, which must outlive this one. */
    uint32_t add_graph(graph &inner)
    {
        quern_graph_node_def def{};
        def.graph = inner;
        return add_node(&def);
    }
    /** Adds a node that only joins edges. */
    uint32_t add_join() { return add_node(nullptr); }
    /** Makes a node begin only when another has finished; see quern_graph_add_edge. */
    QUERN__CPP_NODISCARD quern_result edge(uint32_t before, uint32_t after)
    {
        return check(quern_graph_add_edge(raw_, before, after));
    }
    /** Sets the number of items of a node; see quern_graph_set_count. */
    QUERN__CPP_NODISCARD quern_result set_count(uint32_t node, uint32_t count)
    {
        return check(quern_graph_set_count(raw_, node, count));
    }
    /** Runs the graph and waits; see quern_graph_run. pool may be nullptr. */
    QUERN__CPP_NODISCARD quern_result run(quern_jobs *pool) { return check(quern_graph_run(raw_, pool)); }
    /** Submits a run, as a task of a group. Options: after_tasks. The graph must not be destroyed before it has finished. See
     * quern_graph_submit. */
    template <typename... Options>
    QUERN__CPP_NODISCARD quern_result submit(tasks &group, const Options &...options)
    {
        quern_graph_run_def def{};
        group.define<quern_graph_run_def>(&def, options...);
        return check(quern_graph_submit(raw_, group.jobs_, &def));
    }
    /** Returns the result of the last run; see quern_graph_result. */
    quern_result result() const { return quern_graph_result(raw_); }
    /** Removes all nodes and edges, and destroys the lambdas, unless the graph is running; see quern_graph_clear. */
    void clear()
    {
        const bool is_kept = is_running();
        quern_graph_clear(raw_);
        if (!is_kept) kept_.clear();
    }

  private:
    template <typename F, typename... Options>
    uint32_t add_kept(quern_graph_node_def *def, F &&f, const Options &...options)
    {
        constexpr bool can_keep = std::is_constructible<std::decay_t<F>, F>::value;
        static_assert(can_keep, "quern: this lambda cannot be copied: pass it by std::move");
        if constexpr (can_keep) {
            using kept = detail::kept_lambda<std::decay_t<F>>;
            kept *const lambda = new (std::nothrow) kept(std::forward<F>(f));
            if (lambda == nullptr) {
                (void)check(detail::no_room_for_lambda("quern::graph::add"));
                return no_node;
            }
            kept_.push(lambda);
            detail::apply_task_options(def, options...);
            def->user_data = lambda->get();
            const uint32_t node = add_node(def);
            if (node == no_node) kept_.pop();
            return node;
        } else {
            return no_node; /* does not compile */
        }
    }
    uint32_t add_node(const quern_graph_node_def *def)
    {
        uint32_t node = no_node;
        return check(quern_graph_add_node(raw_, def, &node)) == QUERN_OK ? node : no_node;
    }
    bool is_running() const { return raw_ != nullptr && quern_graph_result(raw_) == QUERN_ERROR_POOL_BUSY; }

    detail::kept_list kept_;
};

} // namespace quern

#endif
