import * as v from 'valibot'
import { fields } from 'svc/sdk'

const { flag, inFile, integer, table, texts, textsThat } = fields
const PEER = /^(?:compatible:\/\/)?(?:[\w.:-]{1,128}@)?(?:\[[0-9a-fA-F:]+\]|[^\s@:[\]/]+):\d{1,5}$/

/** `[network]` at the top of the file. */
export const Network = table(
  'Links to other daemons over the protocol OFP, so that agents of each can ask agents of the others.',
  inFile('opens a port, and lets whoever knows the secret talk to agents'),
  {
    enabled: flag('Listen for other daemons and connect to those of `peers`.'),
    listen: v.optional(
      v.pipe(
        v.string(),
        v.description('Address to listen at, such as `0.0.0.0:4200`; empty: do not listen, only connect.'),
      ),
      '127.0.0.1:4200',
    ),
    node_id: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[\w.:-]{1,128}$/, 'letters, digits and . _ : -, at most 128'),
        v.description('The name that other daemons know this one by; by default made of its key.'),
      ),
    ),
    node_name: v.optional(
      v.pipe(v.string(), v.maxLength(128), v.description('What people call this daemon; by default its host name.')),
    ),
    shared_secret: fields.secretText(
      'Known to all daemons that may be linked; at least 32 bytes. Without it there are no links.',
    ),
    peers: textsThat(
      'Daemons to connect to: `host:port`, or `node_id@host:port`, which accepts that daemon only.' +
        ' With `compatible://` before it the daemon is called with the handshake of `compatible_handshake`.',
      (text) => PEER.test(text),
      'a list of texts such as "host:port" or "node_id@host:port"',
    ),
    share: v.optional(
      texts('Names of agents that linked daemons see and may write to; `*` stands for any characters.'),
      ['*'],
    ),
    allow_unencrypted: flag('Accept a daemon that does not encrypt; what is said can then be read on the way.'),
    compatible_handshake: flag(
      'Link with daemons of the first form of OFP too, which have no key of their own and do not encrypt.',
    ),
    max_peers: integer('Daemons linked at a time; those of `peers` have a place in any case.', 50, 1, 1_000),
    max_known_peers: integer('Daemons whose key is kept; those of `peers` are kept in any case.', 1_000, 1, 100_000),
    new_peers_per_hour: integer(
      'Daemons in an hour whose key is new; those of `peers` come in any case.',
      60,
      1,
      100_000,
    ),
    connections_per_minute: integer('Connections of one address in a minute.', 120, 1, 1_000_000),
    max_half_open: integer('Connections at a time that have not proven that they know the secret.', 32, 1, 1_000),
    max_half_open_per_address: integer('The same for one address.', 8, 1, 1_000),
    handshake_timeout_ms: integer('Milliseconds in which both sides have to prove who they are.', 10_000, 100, 10_000),
    messages_per_minute: integer('Messages of one daemon in a minute.', 60, 1, 100_000),
    frames_per_minute: integer(
      'Frames of one daemon in a minute, pings included; more end the link.',
      600,
      10,
      1_000_000,
    ),
    bytes_per_minute: integer('Bytes of one daemon in a minute; more end the link.', 67_108_864, 16_777_216, 2 ** 40),
    tokens_per_hour: integer('Tokens of models that the messages of one daemon use in an hour.', 1_000_000, 1, 1e12),
    max_message_bytes: integer('Bytes of a message to or from another daemon.', 65_536, 1_024, 16_000_000),
    max_answer_bytes: integer('Bytes of an answer to or from another daemon.', 1_048_576, 1_024, 16_000_000),
    audited_refusals_per_minute: integer(
      'Refused links of one address in a minute that the audit trail names; for all addresses six times as many.',
      10,
      1,
      10_000,
    ),
    max_pending: integer('Messages of one daemon that are worked on at a time.', 16, 1, 1_000),
    max_queued_bytes: integer(
      'Bytes that wait for a daemon to read them; more end the link.',
      33_554_432,
      65_536,
      1_073_741_824,
    ),
    max_hops: integer('Daemons that a message may come through.', 4, 1, 100),
    message_timeout_secs: integer('Seconds to wait for the answer of an agent of another daemon.', 600, 1, 86_400),
    connect_wait_secs: integer('Seconds for which a message waits for a daemon that is not linked.', 30, 0, 3_600),
    ping_interval_ms: integer(
      'Milliseconds without a word of a daemon until it is asked whether it is there.',
      30_000,
      20,
      3_600_000,
    ),
    ping_timeout_ms: integer('Milliseconds in which it has to answer that.', 10_000, 20, 600_000),
    reconnect_min_ms: integer(
      'Milliseconds until the second attempt to connect; each wait is twice as long.',
      1_000,
      10,
      600_000,
    ),
    reconnect_max_ms: integer('The longest wait.', 60_000, 10, 3_600_000),
  },
)
export type Network = v.InferOutput<typeof Network>
