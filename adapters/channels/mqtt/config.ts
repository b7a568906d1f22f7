import * as v from 'valibot'
import { fields } from 'svc/sdk'
import { tlsFields } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import { isFilter, isTopic, matchesFilter, topicFor } from './topics.ts'

const filters = (description: string) =>
  fields.textsThat(description, isFilter, 'a list of topics, in which + stands for one level and # for the rest')

export const config = v.pipe(
  v.object({
    base_url: v.pipe(
      v.string(),
      v.regex(/^(?:mqtts?|wss?):\/\/[^?#@\s]+$/i, 'an address such as mqtts://broker.example.org:8883'),
      v.description('The broker: `mqtts://`, `mqtt://`, `wss://` or `ws://`.'),
    ),
    username: fields.text('The user at the broker.'),
    token: fields.secretText('The password of the user.'),
    client_id: fields.text('The client id. Default: one that is made once and kept.'),
    subscribe_topics: v.pipe(
      filters('Topics to listen to. A `+` in one is the sender: `svc/in/+`.'),
      v.minLength(1, 'at least one topic'),
    ),
    publish_topic: v.optional(
      v.pipe(
        v.string(),
        v.check((topic) => isTopic(topicFor(topic, 'user')), 'a topic without + and #, such as "svc/out/{user}"'),
        v.description('Where answers go; `{user}` is who is answered.'),
      ),
      'svc/out/{user}',
    ),
    response_topics: filters(
      'Topics that a sender may name for the answer. Empty: answers go to `publish_topic` only.',
    ),
    status_topic: fields.text('Says `online` or `offline`, retained.'),
    protocol: v.optional(v.pipe(v.picklist(['v4', 'v5']), v.description('MQTT 3.1.1 (`v4`) or 5 (`v5`).')), 'v5'),
    qos: fields.integer('How messages are delivered: 0 at most once, 1 at least once.', 1, 0, 1),
    session_expiry_secs: fields.integer(
      'How long the broker keeps messages for the bot while it is away (MQTT 5).',
      604_800,
      0,
      4_294_967_294,
    ),
    ...tlsFields,
  }),
  v.check(
    ({ subscribe_topics, publish_topic, response_topics }) =>
      ![topicFor(publish_topic, 'user'), ...response_topics].some((topic) =>
        subscribe_topics.some((filter) => matchesFilter(filter, topic)),
      ),
    'subscribe_topics must not include the topics of answers: the bot would answer itself',
  ),
)
export type MqttConfig = v.InferOutput<typeof config>
export type Link = ChannelLink<MqttConfig>
