/**
 * Bugs that are planted on purpose, one at a time, into a copy of the build: a simulation that does
 * not notice one of them is not done. Each is a piece of a compiled file and what takes its place.
 *
 * Not here, because no run can show them: a follower that answers for, or commits, what it has
 * beyond the entries that its leader has sent. The first append that fits begins right behind what
 * both logs share (hint and answer to it leave nothing out), so the first entry in it makes an end
 * to whatever else lies behind. The core's own tests say it of single messages.
 */
export interface PlantedBug {
  readonly name: string;
  /** Below `src`, without its extension. */
  readonly file: string;
  readonly from: RegExp;
  readonly to: string;
}

export const plantedBugs: readonly PlantedBug[] = [
  // Votes and terms.
  {
    name: 'votes leave before they are on disk',
    file: 'raft/ready',
    from: /if \(this\.#isDurable\)\s+this\.send\(message\);/,
    to: 'if (true) this.send(message);',
  },
  {
    name: 'two votes in a term',
    file: 'raft/raft',
    from: /votedFor === null \|\| votedFor === from;/,
    to: 'true;',
  },
  {
    name: 'a restart forgets the term',
    file: 'replica/recovered-log',
    from: /this\.hardState = decodeHardState\(entry\.meta\);/,
    to: '',
  },
  {
    name: 'votes right after a start',
    file: 'raft/raft',
    from: /this\.#contactMs = nowMs;/,
    to: 'this.#contactMs = Number.NEGATIVE_INFINITY;',
  },
  {
    name: 'a log that is behind gets votes',
    file: 'raft/raft',
    from: /return lastIndex >= this\.#log\.lastIndex;/,
    to: 'return true;',
  },
  // What is committed.
  {
    name: 'entries of earlier terms are committed by counting',
    file: 'raft/raft',
    from: /if \(index < leadership\.firstIndex\)\s+return;/,
    to: '',
  },
  {
    name: 'the leader counts its own entries before they are on disk',
    file: 'raft/raft',
    from: /leadership\.majorityIndex\(this\.#persistedIndex\)/,
    to: 'leadership.majorityIndex(this.#log.lastIndex)',
  },
  {
    name: 'the entry before is not compared',
    file: 'raft/follower',
    from: /return prevIndex < this\.#log\.baseIndex \|\|/,
    to: 'return true ||',
  },
  {
    name: 'a follower answers before its disk does',
    file: 'raft/raft',
    from: /const matched = Math\.min\(this\.#persistedIndex, verifiedIndex\);/,
    to: 'const matched = verifiedIndex;',
  },
  {
    name: 'committed entries are truncated',
    file: 'raft/follower',
    from: /if \(this\.#log\.termAt\(index\) !== run\.term\)\s+return index;/,
    to: 'return index;',
  },
  {
    name: 'members change twice at a time',
    file: 'raft/raft',
    from: /return this\.#memberships\.index <= this\.#commitIndex;/,
    to: 'return true;',
  },
  // Leases.
  {
    name: 'reads without a lease',
    file: 'raft/raft',
    from: /return nowMs < leadership\.leaseEndMs\(nowMs\);/,
    to: 'return true;',
  },
  {
    name: 'the lease is not given up with a hand-over',
    file: 'raft/leadership',
    from: /this\.#successor\?\.isTold === true/,
    to: 'false',
  },
  // The driver.
  {
    name: 'answers before the sync',
    file: 'replica/group-commit',
    from: /sync === 'interval' \|\| group\.end <= journal\.synced/,
    to: 'true',
  },
  {
    name: 'answers before the majority has it',
    file: 'replica/consensus',
    from: /this\.#waiting\.push\(\{ stored: stored\[i\], pending: one, start \}\);/,
    to: "this.#waiting.push({ stored: stored[i], pending: one, start }); settle(one, 'applied');",
  },
  {
    name: 'plans outlive leadership',
    file: 'replica/consensus',
    from: /this\.#leadingTerm = 0;\s+this\.#options\.listener\.onPlansDropped\(\);/,
    to: 'this.#leadingTerm = 0;',
  },
  {
    name: 'plans before all of earlier terms is applied',
    file: 'replica/consensus',
    from: /const \{ term \} = noop;/,
    to: 'const { term } = noop; this.#onLeading(term);',
  },
  {
    name: 'what was refused counts as planned',
    file: 'replica/consensus',
    from: /afterPlanned\(done\) \{\s+if \(!this\.isLeading\) \{/,
    to: 'afterPlanned(done) { if (false) {',
  },
  {
    name: 'a hand-over that fails leaves the plans that were refused',
    file: 'raft/leadership',
    from: /return this\.#successor !== undefined && nowMs >= this\.#successor\.untilMs;/,
    to: 'if (this.#successor !== undefined && nowMs >= this.#successor.untilMs) this.#successor = undefined; return false;',
  },
  // The journal, snapshots.
  {
    name: 'a snapshot says that the journal goes on too late',
    file: 'replica/consensus',
    from: /return this\.#waiting\[0\]\?\.start \?\? this\.#voidFrom \?\? this\.#durableEnd;/,
    to: 'return this.#durableEnd;',
  },
  {
    name: 'a commit mark beyond what is committed',
    file: 'replica/consensus',
    from: /encodeCommitMark\(this\.#appliedIndex\)/,
    to: 'encodeCommitMark(this.#raft.lastIndex)',
  },
  {
    name: 'void entries come back at a start',
    file: 'log/recovery',
    from: /if \(entry\.index >= voidIndex\)\s+continue;/,
    to: '',
  },
  {
    name: 'void entries are not made void on disk',
    file: 'replica/group-commit',
    from: /if \(first !== undefined && first <= journal\.lastIndex\) \{/,
    to: 'if (false) {',
  },
  {
    name: 'all that is recovered counts as committed',
    file: 'replica/recovered-log',
    from: /return isOnlyVoter\(.*;/,
    to: 'return true;',
  },
  {
    name: 'a snapshot replaces a log that has gone on',
    file: 'replica/snapshot-fetch',
    from: /if \(!isLacking\(base\)\) \{/,
    to: 'if (false) {',
  },
  {
    name: 'a snapshot forgets the term and the vote',
    file: 'replica/snapshot-fetch',
    from: /\.\.\.hardState, base, runs: \[\]/,
    to: 'term: 0, votedFor: null, base, runs: []',
  },
  {
    name: 'a snapshot comes without some of its entries',
    file: 'replica/snapshot-source',
    from: /let entries = \[\];/,
    to: 'let entries = []; index += 3;',
  },
  // Versions.
  {
    name: 'a node of an older version is taken in',
    file: 'cluster/leader-duties',
    from: /if \(level >= needed\)\s+return true;/,
    to: 'return true;',
  },
  {
    name: 'newer entries are written though a member has not said that it knows them',
    file: 'cluster/formation',
    from: /\?\.level \?\? 0/,
    to: '?.level ?? Infinity',
  },
  // Groups and keyed delivery.
  {
    name: 'records leave before their grants are durable',
    file: 'broker/keyed/lane-answer',
    from: /if \(!isDurable \|\| read === undefined\) \{/,
    to: 'if (read === undefined) {',
  },
  {
    name: 'leases are forgotten with the leader',
    file: 'groups/keyed/dispatcher',
    from: /this\.filing\.expect\(restored\);/,
    to: '',
  },
  {
    name: 'duplicates are stored',
    file: 'replica/produce-planner',
    from: /return this\.#duplicate\(part, producerId, judged\);/,
    to: '',
  },
  {
    name: 'a leader that may be none answers its clients',
    file: 'broker/session',
    from: /if \(replica\.mayAnswer\) \{\s+reply\.send/,
    to: 'if (true) { reply.send',
  },
];
