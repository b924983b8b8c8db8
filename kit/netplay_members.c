/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* How machines agree on the table of members.
 *
 * A table is followed by the next one when players fall silent, when one joins, or when an agreement was begun and not
 * ended. The member with the lowest index that hears at least half of the members, and is heard, leads. It asks the
 * members that hear each other (PROPOSE). Each of them promises to accept nothing of lower ballots, stops taking inputs of
 * others until there is a new table, and reports which inputs it knows (PROMISE). So the leader can drop a player from a
 * frame that no member has verified with another input, and let a player take part from a frame that no member has
 * verified without it. When all have accepted the table (ACCEPT, ACCEPTED), it counts: the leader adopts it, and the others when
 * they get it with its inputs. If the leader falls silent before, the next one finds the table that was accepted, if
 * there is one, and proposes that: this is the agreement of Paxos, for one table after the other, with the members of the
 * table before as acceptors.
 *
 * The members that agree are more than half, so that no other group can agree on another table, or exactly half.
 * Members whose player has asked for the world with a new machine count for neither: they are gone. If both halves go
 * on, the one with the lowest index has precedence, and the other one learns when it meets the first that it is out
 * (`forks`). A machine that hears less than half waits. */
#include "kit/netplay_internal.h"

#include "kit/random.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------- one member */

bool quern__netplay_has_zero_input(const quern__netplay_member *member, uint32_t frame)
{
    return member->active_from > member->dropped_from
               ? frame >= member->dropped_from && frame < member->active_from
               : frame < member->active_from || frame >= member->dropped_from;
}

bool quern__netplay_is_out(const quern__netplay_member *member)
{
    return member->active_from > member->dropped_from ? member->active_from == QUERN__NETPLAY_NEVER
                                                      : member->dropped_from != QUERN__NETPLAY_NEVER;
}

bool quern__netplay_is_member(const quern__netplay_table *table, uint32_t player, uint32_t life)
{
    return !quern__netplay_is_out(&table->members[player]) && table->members[player].life == life;
}

uint32_t quern__netplay_limit(const quern_netplay *netplay, uint32_t player)
{
    const quern__netplay_member *member = &netplay->table.members[player];
    const uint32_t known_end = netplay->players[player].known_end;
    if (!quern__netplay_has_zero_input(member, known_end)) return known_end;
    /* The player may have been dropped at the very frame from which it took part. */
    return known_end < member->active_from && !quern__netplay_has_zero_input(member, member->active_from)
               ? member->active_from
               : QUERN__NETPLAY_NEVER;
}

uint32_t quern__netplay_find_confirmed(const quern_netplay *netplay)
{
    uint32_t confirmed = QUERN__NETPLAY_NEVER;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const uint32_t limit = quern__netplay_limit(netplay, i);
        if (limit < confirmed) confirmed = limit;
    }
    return confirmed;
}

bool quern__netplay_is_near(const quern_netplay *netplay, uint32_t frame)
{
    return frame < QUERN__NETPLAY_NEVER / 2 && frame <= netplay->frame + QUERN__NETPLAY_WINDOW &&
           netplay->frame <= frame + QUERN__NETPLAY_WINDOW;
}

/* ------------------------------------------------------------------------------------- members that are heard */

static bool has(uint8_t players, uint32_t player)
{
    return (players >> player & 1) != 0;
}

static uint32_t count(uint8_t players)
{
    uint32_t number = 0;
    for (; players != 0; players &= (uint8_t)(players - 1))
        number++;
    return number;
}

uint8_t quern__netplay_members(const quern__netplay_table *table)
{
    uint8_t members = 0;
    for (uint32_t i = 0; i < QUERN_MAX_NETPLAY_PLAYERS; i++)
        if (!quern__netplay_is_out(&table->members[i])) members |= (uint8_t)(1u << i);
    return members;
}

bool quern__netplay_has_passed(const quern_netplay *netplay, uint64_t since_ns, double share)
{
    return netplay->def.timeout_seconds > 0 &&
           (double)(netplay->now_ns - since_ns) > share * netplay->def.timeout_seconds * 1e9;
}

/* Returns the members that have not been replaced by a new machine of the same player. */
static uint8_t find_living(const quern_netplay *netplay)
{
    uint8_t living = quern__netplay_members(&netplay->table);
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (netplay->players[i].is_dead) living &= (uint8_t) ~(1u << i);
    return living;
}

uint8_t quern__netplay_find_alive(const quern_netplay *netplay)
{
    uint8_t alive = find_living(netplay);
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (i != netplay->def.player && quern__netplay_has_passed(netplay, netplay->players[i].heard_ns, 1))
            alive &= (uint8_t) ~(1u << i);
    return alive;
}

/* Returns whether these members are at least half of the living ones. */
static bool is_half(const quern_netplay *netplay, uint8_t members)
{
    return 2 * count(members) >= count(find_living(netplay));
}

uint32_t quern__netplay_find_leader(const quern_netplay *netplay)
{
    const uint8_t alive = quern__netplay_find_alive(netplay), living = find_living(netplay);
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        if (!has(alive, i)) continue;
        const uint8_t heard =
            i == netplay->def.player ? alive : living & (uint8_t)~netplay->players[i].suspects;
        if (is_half(netplay, heard)) return i;
    }
    return netplay->def.player_count;
}

/* Returns whether two members of a group may hear each other. A machine that errs cannot say alone that another one is
 * silent: without its fresh packets, the other one says the same. */
static bool hear_each_other(const quern_netplay *netplay, uint32_t a, uint32_t b)
{
    if (a == netplay->def.player) return !has(netplay->players[b].suspects, a);
    if (b == netplay->def.player) return !has(netplay->players[a].suspects, b);
    return !has(netplay->players[a].suspects, b) || !has(netplay->players[b].suspects, a);
}

/* Returns the largest group of members with this machine in which all hear each other. */
static uint8_t find_group(const quern_netplay *netplay)
{
    const uint8_t alive = quern__netplay_find_alive(netplay);
    uint8_t best = 0, suspected = 0;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (has(alive, i)) suspected |= netplay->players[i].suspects;
    if ((suspected & alive) == 0) return alive;
    for (uint32_t set = 0; set < 1u << netplay->def.player_count; set++) {
        bool is_group = has((uint8_t)set, netplay->def.player) && (set & ~(uint32_t)alive) == 0;
        for (uint32_t i = 0; i < netplay->def.player_count && is_group; i++)
            for (uint32_t k = 0; k < i && is_group; k++)
                if (has((uint8_t)set, i) && has((uint8_t)set, k)) is_group = hear_each_other(netplay, i, k);
        /* Of groups of the same size, the first has the lower indices. */
        if (is_group && count((uint8_t)set) > count(best)) best = (uint8_t)set;
    }
    return best;
}

/* --------------------------------------------------------------------------------------------- tables */

static uint32_t mix(uint32_t sum, uint32_t value)
{
    return (uint32_t)quern_random_mix((uint64_t)sum << 32 | value);
}

void quern__netplay_set_id(const quern_netplay *netplay, quern__netplay_table *table)
{
    uint32_t id = mix(netplay->def.player_count, netplay->def.input_bytes);
    id = mix(mix(id, table->epoch), table->parent);
    for (uint32_t i = 0; i < table->fork_count; i++)
        id = mix(mix(id, table->forks[i].epoch), table->forks[i].id);
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_member *member = &table->members[i];
        id = mix(mix(mix(id, member->active_from), member->dropped_from), member->life);
    }
    table->id = id;
}

/* Returns whether table `a` has precedence over `b`: it came later, or the forks of the other one are worse. */
static bool precedes(const quern__netplay_table *a, const quern__netplay_table *b)
{
    uint32_t i = 0;
    while (i < a->fork_count && i < b->fork_count && a->forks[i].id == b->forks[i].id)
        i++;
    if (i < a->fork_count && i < b->fork_count)
        return a->forks[i].epoch != b->forks[i].epoch ? a->forks[i].epoch > b->forks[i].epoch
                                                      : a->forks[i].id < b->forks[i].id;
    /* A table that is older than the other one's fork is an ancestor of it, not of the other half. */
    if (i < a->fork_count) return b->epoch < a->forks[i].epoch;
    if (i < b->fork_count) return a->epoch >= b->forks[i].epoch;
    return a->epoch != b->epoch ? a->epoch > b->epoch : a->id < b->id;
}

static void adopt(quern_netplay *netplay, const quern__netplay_table *table)
{
    const quern__netplay_table before = netplay->table;
    netplay->table = *table;
    netplay->change = (quern__netplay_change){0};
    netplay->minority_since_ns = 0;
    netplay->adopted_ns = netplay->now_ns;
    netplay->idle = 0;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_member *member = &table->members[i];
        quern__netplay_player *player = &netplay->players[i];
        player->suspects = 0;
        player->is_changing = false;
        player->answer = QUERN__NETPLAY_NONE;
        player->preceded_ns = 0;
        if (before.members[i].life != member->life || quern__netplay_is_out(member))
            player->is_dead = false;
        const bool is_out = quern__netplay_is_out(member);
        if (!is_out && netplay->is_admitted && before.members[i].life == member->life) continue;
        /* A player that is out may have verified frames with inputs that no other machine has got. */
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++)
            player->hashes[k].frame = QUERN__NETPLAY_NEVER;
        if (is_out) continue;
        /* The player takes part from now on: which inputs its machine knows is not known yet. */
        player->known_end =
            netplay->is_admitted || i == netplay->def.player ? member->active_from : netplay->loaded_frame;
        player->frame = player->verified = 0;
        player->ahead = player->their_ahead = 0;
        player->heard_ns = netplay->progressed_ns = netplay->now_ns;
        netplay->starved_ns = 0;
        memset(player->acks, 0, sizeof player->acks);
        for (uint32_t k = 0; k < netplay->def.player_count; k++)
            if (k != i) netplay->players[k].acks[i] = netplay->is_admitted ? member->active_from : 0;
    }
    if (!netplay->is_admitted || (netplay->transfer.player < netplay->def.player_count &&
                                  !quern__netplay_is_out(&table->members[netplay->transfer.player])))
        quern__netplay_end_transfer(netplay);
    netplay->is_admitted = true;
}

/* Returns whether a table can be the next one: it changes only frames near the present. */
static bool is_possible(const quern_netplay *netplay, const quern__netplay_table *table)
{
    if (table->parent != netplay->table.id || table->epoch != netplay->table.epoch + 1) return false;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        const quern__netplay_member *now = &netplay->table.members[i], *then = &table->members[i];
        const bool is_out = quern__netplay_is_out(now);
        if (then->active_from != now->active_from &&
            (!is_out || then->life == 0 || !quern__netplay_is_near(netplay, then->active_from)))
            return false;
        if (then->dropped_from != now->dropped_from && !quern__netplay_is_near(netplay, then->dropped_from))
            return false;
        if (then->life != now->life && then->active_from == now->active_from) return false;
    }
    return true;
}

void quern__netplay_meet(quern_netplay *netplay, uint32_t sender, const quern__netplay_table *table,
                         bool knows_own)
{
    const bool is_member = quern__netplay_is_member(table, netplay->def.player, netplay->life);
    if (!netplay->is_admitted) {
        /* The life says that the sender of the loaded world has let this machine take part. */
        if (is_member && !netplay->counts.is_joining &&
            table->members[netplay->def.player].active_from >= netplay->loaded_frame)
            adopt(netplay, table);
        return;
    }
    quern__netplay_player *player = &netplay->players[sender];
    if (is_member && table->parent == netplay->table.id) {
        /* The members of the next table have promised to wait for it. */
        if (netplay->change.promised != 0 && is_possible(netplay, table)) adopt(netplay, table);
    } else if (!knows_own || !precedes(table, &netplay->table)) {
        player->preceded_ns = 0;
    } else if (player->preceded_ns == 0) {
        player->preceded_ns = netplay->now_ns;
    } else if (quern__netplay_has_passed(netplay, player->preceded_ns, 0.125) ||
               netplay->def.timeout_seconds == 0) {
        netplay->end =
            QUERN__NETPLAY_DROPPED; /* the sender says so again: it was no packet of a machine that errs */
    }
}

/* ------------------------------------------------------------------------------------------ agreement */

/* Notes which inputs this machine knows, and takes no more inputs until there is a new table (read_run). */
static void promise(quern_netplay *netplay, uint32_t ballot)
{
    quern__netplay_change *change = &netplay->change;
    change->promised = ballot;
    change->verified[netplay->def.player] = netplay->verified;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        change->limits[netplay->def.player][i] = quern__netplay_limit(netplay, i);
}

void quern__netplay_take_propose(quern_netplay *netplay, uint32_t sender, uint32_t ballot)
{
    quern__netplay_change *change = &netplay->change;
    if (ballot > change->newest) change->newest = ballot;
    /* A machine promises only to the member that leads as far as it hears. */
    if (quern__netplay_find_leader(netplay) != sender) return;
    if (ballot >= change->promised) {
        if (ballot != change->promised) change->ballot = 0;
        promise(netplay, ballot);
    }
    netplay->players[sender].answer = QUERN__NETPLAY_PROMISE;
}

void quern__netplay_take_accept(quern_netplay *netplay, uint32_t sender, uint32_t ballot,
                                const quern__netplay_table *table)
{
    quern__netplay_change *change = &netplay->change;
    if (change->promised == 0) return;
    if (ballot < change->promised) { /* the sender learns that it has to propose with a higher ballot */
        netplay->players[sender].answer = QUERN__NETPLAY_PROMISE;
        return;
    }
    if (!is_possible(netplay, table)) {
        netplay->players[sender].is_refused = true;
        return;
    }
    change->promised = change->accepted = ballot;
    change->accepted_table = *table;
    netplay->players[sender].answer = QUERN__NETPLAY_ACCEPTED;
}

void quern__netplay_take_promise(quern_netplay *netplay, uint32_t sender, uint32_t ballot,
                                 const quern__netplay_change *report)
{
    quern__netplay_change *change = &netplay->change;
    if (ballot > change->newest) change->newest = ballot;
    if (change->ballot != 0 && ballot > change->ballot)
        change->ballot = 0; /* another member has proposed since: ask again */
    if (change->ballot == 0 || change->is_accepting || ballot != change->ballot ||
        !has(change->asked, sender))
        return;
    bool is_possible_report = quern__netplay_is_near(netplay, report->verified[sender]) &&
                              (report->accepted == 0 || is_possible(netplay, &report->accepted_table));
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (!quern__netplay_is_near(netplay, report->limits[sender][i]) &&
            (report->limits[sender][i] != QUERN__NETPLAY_NEVER ||
             !quern__netplay_is_out(&netplay->table.members[i])))
            is_possible_report = false;
    if (!is_possible_report) {
        netplay->players[sender].is_refused = true;
        return;
    }
    change->promised_by |= (uint8_t)(1u << sender);
    change->verified[sender] = report->verified[sender];
    memcpy(change->limits[sender], report->limits[sender], sizeof change->limits[sender]);
    if (report->accepted > change->best) {
        change->best = report->accepted;
        change->table = report->accepted_table;
    }
}

void quern__netplay_take_accepted(quern_netplay *netplay, uint32_t sender, uint32_t ballot)
{
    if (ballot == netplay->change.ballot && netplay->change.is_accepting &&
        has(netplay->change.asked, sender))
        netplay->change.accepted_by |= (uint8_t)(1u << sender);
}

/* ------------------------------------------------------------------------------------------ leading */

/* Adds the player of the transfer to the next table, if all members that were asked have verified the frames of its earlier lives. */
static void add_joining(const quern_netplay *netplay, quern__netplay_table *table)
{
    const quern__netplay_change *change = &netplay->change;
    const quern__netplay_transfer *transfer = &netplay->transfer;
    if (transfer->player >= netplay->def.player_count || !transfer->is_loaded) return;
    quern__netplay_member *member = &table->members[transfer->player];
    uint32_t active_from = transfer->frame;
    if (!quern__netplay_is_out(member)) return;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        if (!has(change->asked, i)) continue;
        if (change->verified[i] < member->dropped_from ||
            change->limits[i][transfer->player] != QUERN__NETPLAY_NEVER)
            return;
        for (uint32_t k = 0; k < netplay->def.player_count; k++)
            if (change->limits[i][k] != QUERN__NETPLAY_NEVER && change->limits[i][k] > active_from)
                active_from = change->limits[i][k];
    }
    member->active_from = active_from;
    member->life = transfer->life;
}

/* Makes the next table from the reports of the members that were asked. `is_fork`: whether another group may go on and has
 * precedence. */
static void make_table(const quern_netplay *netplay, bool is_fork, quern__netplay_table *out_table)
{
    const quern__netplay_change *change = &netplay->change;
    const uint8_t living = find_living(netplay);
    quern__netplay_table *table = out_table;
    *table = netplay->table;
    table->epoch++;
    table->parent = netplay->table.id;
    for (uint32_t i = 0; i < netplay->def.player_count; i++) {
        quern__netplay_member *member = &table->members[i];
        uint32_t known = 0;
        if (has(change->asked, i)) continue;
        for (uint32_t k = 0; k < netplay->def.player_count; k++)
            if (has(change->asked, k) && change->limits[k][i] > known) known = change->limits[k][i];
        /* Dropped from the first frame on whose input none of them knows. If the inputs of a player that is out already
         * are lost with the machines that knew them, that is an earlier one than before. */
        if (known != QUERN__NETPLAY_NEVER) member->dropped_from = known;
    }
    uint32_t lowest = 0;
    while (!has(living, lowest))
        lowest++;
    if (is_fork || (2 * count(change->asked) <= count(living) && !has(change->asked, lowest))) {
        if (table->fork_count == QUERN__NETPLAY_FORKS)
            memmove(table->forks, table->forks + 1, --table->fork_count * sizeof *table->forks);
        table->forks[table->fork_count++] =
            (quern__netplay_fork){table->epoch, mix(table->parent, change->asked)};
    }
    add_joining(netplay, table);
    quern__netplay_set_id(netplay, table);
}

/* Returns whether the session has not ended, and this machine has confirmed no frame for six timeouts though the members have
 * heard each other all the time. The time of agreements does not count, since it accepts no inputs then. */
static bool stands_still(const quern_netplay *netplay)
{
    const bool is_at_end = netplay->def.frame_count != 0 && netplay->confirmed >= netplay->def.frame_count;
    return !is_at_end && quern__netplay_has_passed(netplay, netplay->now_ns - netplay->starved_ns, 6) &&
           quern__netplay_has_passed(netplay, netplay->steady_ns, 6);
}

/* Returns the members that are heard, and give no inputs though all others wait for them. */
static uint8_t find_idle(const quern_netplay *netplay)
{
    uint8_t idle = 0;
    if (netplay->transfer.player < netplay->def.player_count || !stands_still(netplay)) return 0;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (i != netplay->def.player && quern__netplay_limit(netplay, i) == netplay->confirmed)
            idle |= (uint8_t)(1u << i);
    return idle;
}

/* Returns whether this machine waits for inputs of a player that is out, and members say that they know these inputs, but none
 * has sent them for six timeouts: members whose world is a later one cannot, and the machines that could are gone. No table
 * can drop the player from an earlier frame, since others have run the frames with these inputs. */
static bool is_left_behind(const quern_netplay *netplay)
{
    const uint8_t members = quern__netplay_members(&netplay->table);
    if (!stands_still(netplay)) return false;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        for (uint32_t k = 0; k < netplay->def.player_count; k++)
            if (!has(members, i) && quern__netplay_limit(netplay, i) == netplay->confirmed &&
                has(members, k) && k != netplay->def.player &&
                netplay->players[k].acks[i] > netplay->confirmed)
                return true;
    return false;
}

/* Returns whether the leader should propose a table: the members should be others, an agreement was begun and not
 * ended, or inputs may be lost. */
static bool should_change(const quern_netplay *netplay, uint8_t group)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    if (group != quern__netplay_members(&netplay->table) || netplay->change.promised != 0) return true;
    if (transfer->player < netplay->def.player_count && transfer->is_loaded) return true;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (has(group, i) && i != netplay->def.player && netplay->players[i].is_changing &&
            quern__netplay_has_passed(netplay, netplay->progressed_ns, 0.25))
            return true;
    /* All may wait for inputs of a player that is out, which were lost with the machines that knew them. */
    return transfer->player >= netplay->def.player_count &&
           quern__netplay_has_passed(netplay, netplay->progressed_ns, 3) &&
           quern__netplay_has_passed(netplay, netplay->adopted_ns, 3);
}

static void propose(quern_netplay *netplay, uint8_t group)
{
    quern__netplay_change *change = &netplay->change;
    if (change->ballot == 0 || change->asked != group) {
        const uint32_t most = QUERN_MAX_NETPLAY_PLAYERS;
        change->newest = (change->newest / most + 1) * most + netplay->def.player;
        change->ballot = change->newest;
        change->asked = group;
        change->is_accepting = false;
        change->promised_by = change->accepted_by = (uint8_t)(1u << netplay->def.player);
        promise(netplay, change->ballot);
        change->best = change->accepted;
        if (change->accepted != 0) change->table = change->accepted_table;
    }
    if (!change->is_accepting && change->promised_by == group) {
        /* All members of the accepted table may be silent: then this group is the other half. */
        if (change->best == 0 || (quern__netplay_members(&change->table) & group) == 0)
            make_table(netplay, change->best != 0, &change->table);
        change->is_accepting = true;
        change->accepted = change->ballot;
        change->accepted_table = change->table;
    }
}

void quern__netplay_lead(quern_netplay *netplay)
{
    enum { CALLS_PER_MESSAGE = 4 };
    quern__netplay_change *change = &netplay->change;
    const uint8_t living = find_living(netplay), self = (uint8_t)(1u << netplay->def.player);
    const uint32_t confirmed = quern__netplay_find_confirmed(netplay);
    if (confirmed != netplay->confirmed) {
        netplay->progressed_ns = netplay->now_ns;
        netplay->starved_ns = 0;
    }
    netplay->confirmed = confirmed;
    if (is_half(netplay, quern__netplay_find_alive(netplay)))
        netplay->minority_since_ns = 0;
    else if (netplay->minority_since_ns == 0)
        netplay->minority_since_ns = netplay->now_ns;
    if (find_group(netplay) != quern__netplay_members(&netplay->table))
        netplay->steady_ns = netplay->now_ns;
    if (is_left_behind(netplay)) {
        netplay->end = QUERN__NETPLAY_LEFT_BEHIND;
        return;
    }
    if (quern__netplay_find_leader(netplay) != netplay->def.player) {
        change->ballot = 0;
        return;
    }
    /* While this machine takes no inputs, it cannot tell which members give none. */
    if (change->promised == 0) netplay->idle = find_idle(netplay);
    uint8_t group = find_group(netplay);
    if (2 * count(group & (uint8_t)~netplay->idle) > count(living)) group &= (uint8_t)~netplay->idle;
    bool is_silence_long = true;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (has(living & (uint8_t) ~(group | netplay->idle), i) && !netplay->players[i].is_refused &&
            !quern__netplay_has_passed(netplay, netplay->players[i].heard_ns, 1.5))
            is_silence_long = false;
    /* Half of the members go on only if they do not hear the other half for longer. */
    const bool is_enough =
        2 * count(group) > count(living) || (2 * count(group) == count(living) && is_silence_long);
    if (!is_enough || !should_change(netplay, group)) {
        change->ballot = 0;
        return;
    }
    const uint32_t ballot = change->ballot;
    const bool was_accepting = change->is_accepting;
    propose(netplay, group);
    if (change->is_accepting && change->accepted_by == group) {
        const quern__netplay_table table = change->table;
        if (quern__netplay_is_member(&table, netplay->def.player, netplay->life))
            adopt(netplay, &table);
        else
            netplay->end = QUERN__NETPLAY_DROPPED; /* the members that accepted the table go on */
        return;
    }
    if (ballot == change->ballot && was_accepting == change->is_accepting &&
        netplay->call_count % CALLS_PER_MESSAGE != 0)
        return;
    const uint8_t answered = change->is_accepting ? change->accepted_by : change->promised_by;
    for (uint32_t i = 0; i < netplay->def.player_count; i++)
        if (has(group & (uint8_t) ~(answered | self), i))
            quern__netplay_send_change(
                netplay, i, change->is_accepting ? QUERN__NETPLAY_ACCEPT : QUERN__NETPLAY_PROPOSE,
                change->ballot);
}
