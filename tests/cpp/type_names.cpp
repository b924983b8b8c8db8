/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Names of C++ types are the same for all compilers and standard libraries. Each compiler that is installed compiles this
 * file. */

#include <quern/type_name.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

enum class Kind : int { A, B };
enum Old { X1, X2 };
template <typename T> struct Wrap {
};
template <typename... T> struct Pack {
};
template <auto value> struct Value {
};
template <char c> struct Letter {
};
template <template <typename> class> struct Outer {
};
union Either {
    int number;
};
typedef struct tagged_s {
    int x;
} tagged;
typedef struct {
    int x;
} untagged;
int object;

namespace game {

enum class Mode { Fast };
enum Plain { P };
struct Position {
    struct Part {};
};
inline namespace v2 {
struct Newer {};
} // namespace v2
namespace v1x {
struct Other {};
} // namespace v1x
namespace {
struct Hidden {};
} // namespace
} // namespace game

namespace {
struct Unnamed {};
template <typename T> struct UnnamedOf {
};
enum UnnamedEnum { one_of_them };
} // namespace

namespace a_company_of_some_size {
namespace the_name_of_the_game {
namespace simulation_of_vehicles {
struct SuspensionSpringState {};
struct SuspensionSpringStats {};
} // namespace simulation_of_vehicles
} // namespace the_name_of_the_game
} // namespace a_company_of_some_size

template <> inline constexpr auto quern::name<game::Mode> = "mode";
template <typename T> inline constexpr auto quern::name<Outer<Wrap> (*)(T)> = "family";

template <typename T> constexpr bool is_named(const char *name)
{
    const char *given = quern::detail::name_of<T>();
    while (*given != '\0' && *given == *name) {
        given++;
        name++;
    }
    return *given == *name;
}

#define EXPECT_NAME(name, ...) static_assert(is_named<__VA_ARGS__>(name), name)

EXPECT_NAME("int", int);
EXPECT_NAME("bool", bool);
EXPECT_NAME("Either", Either);
EXPECT_NAME("Kind", Kind);
EXPECT_NAME("tagged_s", tagged);
EXPECT_NAME("untagged", untagged);
EXPECT_NAME("game::Position", game::Position);
EXPECT_NAME("game::Position::Part", game::Position::Part);
EXPECT_NAME("game::Newer", game::Newer);
EXPECT_NAME("game::v1x::Other", game::v1x::Other);
EXPECT_NAME("game::Hidden", game::Hidden);
EXPECT_NAME("Unnamed", Unnamed);
EXPECT_NAME("UnnamedOf<UnnamedOf<int>>", UnnamedOf<UnnamedOf<int>>);
EXPECT_NAME("Value<one_of_them>", Value<one_of_them>);

EXPECT_NAME("Pack<>", Pack<>);
EXPECT_NAME("Pack<char,signed char,unsigned char,short,unsigned short,int>",
            Pack<char, signed char, unsigned char, short, unsigned short, int>);
EXPECT_NAME("Pack<unsigned int,int64_t,uint64_t,float,double>",
            Pack<unsigned, std::int64_t, std::uint64_t, float, double>);
EXPECT_NAME("Pack<int64_t,uint64_t,long double,wchar_t,char16_t,bool>",
            Pack<long long, unsigned long long, long double, wchar_t, char16_t, bool>);
static_assert(is_named<Wrap<long>>(sizeof(long) == 8 ? "Wrap<int64_t>" : "Wrap<int>"), "long");
static_assert(is_named<Wrap<unsigned long>>(sizeof(long) == 8 ? "Wrap<uint64_t>" : "Wrap<unsigned int>"),
              "long");
EXPECT_NAME("Wrap<int32_t_like>", Wrap<struct int32_t_like>);
EXPECT_NAME("Wrap<longer>", Wrap<struct longer>);
EXPECT_NAME("Wrap<classy>", Wrap<class classy>);

EXPECT_NAME("Pack<const char*,char*const,const int*const*>",
            Pack<const char *, char *const, const int *const *>);
EXPECT_NAME("Pack<int&,int&&,volatile int>", Pack<int &, int &&, volatile int>);
EXPECT_NAME("Pack<float[3],float[3][4],void(*)(int)>", Pack<float[3], float[3][4], void (*)(int)>);
EXPECT_NAME("Pack<int Either::*,game::Position(*)[2]>", Pack<int Either::*, game::Position (*)[2]>);
EXPECT_NAME("Outer<Wrap>", Outer<Wrap>);

EXPECT_NAME("Value<3>", Value<3u>);
EXPECT_NAME("Value<-5>", Value<-5>);
EXPECT_NAME("Value<1>", Value<1ull>);
EXPECT_NAME("Value<true>", Value<true>);
EXPECT_NAME("Value<Kind::B>", Value<Kind::B>);
EXPECT_NAME("Value<7>", Value<static_cast<Kind>(7)>);
EXPECT_NAME("Value<-7>", Value<static_cast<Kind>(-7)>);
EXPECT_NAME("Value<X2>", Value<X2>);
EXPECT_NAME("Value<game::Mode::Fast>", Value<game::Mode::Fast>);
EXPECT_NAME("Value<game::P>", Value<game::P>);
EXPECT_NAME("Pack<Value<&object>,Value<nullptr>>", Pack<Value<&object>, Value<nullptr>>);
EXPECT_NAME("Value<&Either::number>", Value<&Either::number>);
EXPECT_NAME("Pack<Letter<97>,Letter<0>,Letter<39>,Letter<59>>",
            Pack<Letter<'a'>, Letter<'\0'>, Letter<'\''>, Letter<';'>>);
EXPECT_NAME("Pack<Letter<93>,Letter<10>,Letter<92>,Letter<27>>",
            Pack<Letter<']'>, Letter<'\n'>, Letter<'\\'>, Letter<'\x1b'>>);

EXPECT_NAME("std::string", std::string);
EXPECT_NAME("std::string_view", std::string_view);
EXPECT_NAME("std::map<std::string,std::vector<std::string>>",
            std::map<std::string, std::vector<std::string>>);
EXPECT_NAME("std::chrono::duration<int64_t,std::ratio<1,1000>>", std::chrono::milliseconds);
EXPECT_NAME("Pack<std::unique_ptr<int>,std::array<float,3>>",
            Pack<std::unique_ptr<int>, std::array<float, 3>>);
EXPECT_NAME("Pack<std::map<int,std::vector<std::string>>>", Pack<std::map<int, std::vector<std::string>>>);
EXPECT_NAME("Pack<std::set<int,std::greater<int>>>", Pack<std::set<int, std::greater<int>>>);
EXPECT_NAME("Pack<Pack<int,std::less<int>>>", Pack<Pack<int, std::less<int>>>);
EXPECT_NAME("Wrap<std::function<void(int)>>", Wrap<std::function<void(int)>>);
EXPECT_NAME("Wrap<std::chrono::steady_clock>", Wrap<std::chrono::steady_clock>);

EXPECT_NAME("a_company_of_some_si~es::SuspensionSpringState#53114f62611999ed",
            a_company_of_some_size::the_name_of_the_game::simulation_of_vehicles::SuspensionSpringState);
static_assert(
    !is_named<a_company_of_some_size::the_name_of_the_game::simulation_of_vehicles::SuspensionSpringStats>(
        "a_company_of_some_si~es::SuspensionSpringState#53114f62611999ed"),
    "long names differ");

EXPECT_NAME("mode", game::Mode);
EXPECT_NAME("family", Outer<Wrap> (*)(int));

/* Types of functions: compilers disagree about the function in front of the name. */
struct Holder {
    bool method(int) const
    {
        struct Local {};
        EXPECT_NAME("Wrap<Local>", Wrap<Local>);
        return quern::detail::type_text_of<Local>.is_internal || true;
    }
    bool operator<(int)
    {
        struct Local {};
        EXPECT_NAME("Pack<int,Local>", Pack<int, Local>);
        return true;
    }
    Holder &operator()(int)
    {
        struct Local {};
        EXPECT_NAME("Local", Local);
        return *this;
    }
};
template <typename T> void local_of()
{
    struct Local {};
    EXPECT_NAME("const Local*", const Local *);
}

/* Types without a name, and those with a name of which compilers disagree, are told from others. */
constexpr auto lambda = [] {};
static_assert(quern::detail::type_text_of<decltype(lambda)>.is_nameless, "a lambda has no name");
struct {
    int x;
} nameless;
static_assert(quern::detail::type_text_of<decltype(nameless)>.is_nameless, "a struct without a name");
static_assert(quern::detail::type_text_of<Wrap<decltype(nameless)>>.is_nameless, "a struct without a name");
static_assert(quern::detail::type_text_of<Unnamed>.is_internal, "an unnamed namespace");
static_assert(quern::detail::type_text_of<Wrap<game::Hidden>>.is_internal, "an unnamed namespace");
static_assert(!quern::detail::type_text_of<Wrap<game::Position>>.is_internal, "a named namespace");

int main()
{
    local_of<int>();
    Holder holder;
    return holder.method(1) && holder < 1 && &holder(1) == &holder && object == 0 && nameless.x == 0 ? 0
                                                                                                     : 1;
}
