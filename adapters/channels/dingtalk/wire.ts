import * as v from 'valibot'

/** Only the fields that are read. Source: https://open.dingtalk.com/document/ (looked up in November 2026) */
const Text = v.nullish(v.string())

/** A part of a message with texts and pictures. */
export const Part = v.object({ text: Text, type: Text, downloadCode: Text })

/** A message to the robot. The content depends on its type; all of its fields are optional. */
export const RobotMessage = v.object({
  msgId: v.string(),
  msgtype: v.string(),
  createAt: v.union([v.number(), v.string()]),
  /** 1: the robot and one person. 2: a group. */
  conversationType: v.string(),
  conversationId: v.string(),
  conversationTitle: Text,
  chatbotCorpId: Text,
  chatbotUserId: Text,
  robotCode: Text,
  senderId: v.string(),
  senderStaffId: Text,
  senderNick: Text,
  isInAtList: v.nullish(v.boolean()),
  sessionWebhook: Text,
  sessionWebhookExpiredTime: v.nullish(v.number()),
  text: v.nullish(v.object({ content: Text })),
  content: v.nullish(
    v.object({
      downloadCode: Text,
      fileName: Text,
      videoType: Text,
      /** What was said, as DingTalk understood it. */
      recognition: Text,
      richText: v.nullish(v.array(v.unknown())),
    }),
  ),
})
export type RobotMessage = v.InferOutput<typeof RobotMessage>

/** A frame of Stream mode. The data is JSON in a text. */
export const Frame = v.object({
  type: v.string(),
  headers: v.object({ topic: Text, messageId: Text }),
  data: Text,
})
export type Frame = v.InferOutput<typeof Frame>

/** An error of the API; that of a session has a number, and status 200. */
export const Failure = v.object({ code: v.string(), message: Text })
export const SessionFailure = v.object({ errcode: v.number(), errmsg: Text })
export const SessionSent = v.object({ errcode: v.literal(0) })
export const Token = v.object({ accessToken: v.string(), expireIn: v.number() })
export const Endpoint = v.object({ endpoint: v.string(), ticket: v.string() })
/** A message to people can fail for one of them, with status 200. */
export const Sent = v.object({
  processQueryKey: v.string(),
  invalidStaffIdList: v.nullish(v.array(v.string()), []),
  flowControlledStaffIdList: v.nullish(v.array(v.string()), []),
})
export const Download = v.object({ downloadUrl: v.string() })
