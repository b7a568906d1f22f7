import * as v from 'valibot'

// Only the fields that are read. Sources: man/signal-cli-jsonrpc.5.adoc and src/main/java/org/asamk/signal/json of
// github.com/AsamK/signal-cli, src/api/api.go of github.com/bbernhard/signal-cli-rest-api (looked up in November 2026)
const Time = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const Offset = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const Text = v.nullish(v.string())

const Mention = v.object({ name: Text, number: Text, uuid: Text, start: Offset, length: Offset })
export type Mention = v.InferOutput<typeof Mention>

const Attachment = v.object({ id: v.string(), contentType: Text, filename: Text, size: v.nullish(v.number()) })
export type Attachment = v.InferOutput<typeof Attachment>

const Data = v.object({
  timestamp: Time,
  message: Text,
  quote: v.nullish(v.object({ id: Time, authorNumber: Text, authorUuid: Text })),
  mentions: v.nullish(v.array(Mention)),
  attachments: v.nullish(v.array(Attachment)),
  groupInfo: v.nullish(v.object({ groupId: v.string(), groupName: Text })),
})
export type Data = v.InferOutput<typeof Data>

export const Envelope = v.object({
  sourceNumber: Text,
  sourceUuid: Text,
  sourceName: Text,
  timestamp: Time,
  /** By the clock of Signal; the others are of the sender. */
  serverReceivedTimestamp: v.nullish(Time),
  dataMessage: v.nullish(Data),
  editMessage: v.nullish(v.object({ targetSentTimestamp: Time, dataMessage: Data })),
})
export type Envelope = v.InferOutput<typeof Envelope>
/** An event has no envelope where signal-cli could not read what came. */
export const Received = v.object({ account: Text, envelope: v.optional(v.unknown()) })

// JSON-RPC of signal-cli
export const rpcAnswer = <S extends v.GenericSchema>(result: S) => v.object({ result })
export const RpcFailure = v.object({
  error: v.object({
    code: v.number(),
    message: v.string(),
    data: v.nullish(
      v.object({
        response: v.nullish(
          v.object({
            results: v.nullish(v.array(v.object({ type: v.string(), retryAfterSeconds: v.nullish(v.number()) }))),
          }),
        ),
      }),
    ),
  }),
})
export type RpcError = v.InferOutput<typeof RpcFailure>['error']
export const Accounts = v.array(v.object({ number: Text }))
export const Version = v.object({ version: v.string() })
export const Sent = v.object({ timestamp: Time })
export const Done = v.unknown()
export const FileContent = v.object({ data: v.string() })

// The REST API
export const About = v.object({ mode: v.string() })
export const Numbers = v.array(v.string())
const RestTime = v.object({ timestamp: v.union([Time, v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.toNumber())]) })
/** One for each recipient; earlier versions answered with the first alone. */
export const RestSent = v.union([RestTime, v.pipe(v.array(RestTime), v.minLength(1))])
export const RestDeleted = RestTime
export const RestMessages = v.array(v.unknown())
export const RestFailure = v.object({ error: v.string() })
