import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { MASK } from 'svc/internal'
import { defineRoute, omitUndefined, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import {
  Delivery,
  DeliveryList,
  DeliveryParams,
  DeliveryQuery,
  EventWebhook,
  EventWebhookChange,
  EventWebhookList,
  ListQuery,
  NewEventWebhook,
  NewWebhook,
  Payload,
  TestResult,
  Webhook,
  WebhookChange,
  WebhookList,
  WebhookParams,
} from './schema.ts'
import type { DeliveryRow, Target } from './schema.ts'
import type { SendResult } from './send.ts'
import type { Webhooks } from './service.ts'

const DELIVERY_DESCRIPTION =
  'Every event is sent as `POST` with `{id, event, timestamp, webhook_id, data}`, at least once, in order, ' +
  'and with the same id and the same bytes at every attempt; any answer but 2xx is tried again with growing pauses. ' +
  'With a secret, `X-Webhook-Signature: sha256=<hex>` is the HMAC-SHA256 of the raw body, and `webhook-signature` ' +
  'that of `<webhook-id>.<webhook-timestamp>.<body>` as in the Standard Webhooks specification. ' +
  'An address of this machine or of a private network is refused unless `[outbound] allow` names it.'
const CHANGE_DESCRIPTION =
  'Fields that are left out stay, and so does a secret that is sent back as it is shown (`***`). ' +
  'An empty secret removes it.'
const example = {
  id: '0f9d1c1e-3f0e-4a3e-9a53-0c8f0b6f9d11',
  url: 'https://example.com/hook',
  secret: MASK,
  enabled: true,
  created_at: '2026-01-31T12:00:00.000Z',
  updated_at: '2026-01-31T12:00:00.000Z',
}
const shownWebhook = { ...example, name: 'ci', events: ['agent_spawned', 'message_completed'] }
const shownSubscription = { ...example, event_type: 'agent_spawned', events: ['agent_spawned'] }
const auth = 'bearer' as const
type Open = () => Promise<Webhooks>
const callback = {
  name: 'event',
  to: 'url',
  summary: 'An event',
  body: Payload,
  headers: {
    'X-Webhook-Id': 'The id of the body; the same at every attempt',
    'X-Webhook-Signature': '`sha256=` and the HMAC-SHA256 of the raw body in hex; when there is a secret',
    'X-Webhook-Timestamp': 'Seconds; of this attempt',
    'webhook-id': 'As X-Webhook-Id',
    'webhook-timestamp': 'As X-Webhook-Timestamp',
    'webhook-signature': 'As in the Standard Webhooks specification; when there is a secret',
  },
  example: {
    id: 'evt_0123456789abcdef0123456789abcdef',
    event: 'message_completed',
    timestamp: '2026-01-31T12:00:00.000Z',
    webhook_id: example.id,
    data: {
      audit_id: 42,
      agent_id: '7a0d7e9c-40f5-4d5b-8a62-2f2a4f5a0f11',
      agent_name: 'assistant',
      turn_id: '1f0c3a52-9c1e-4d0a-b0de-3c6c1f2b9a77',
      session_id: 'c3a1f0de-52d6-4a4e-9b0f-6f1d2e3c4b5a',
      entry_point: 'rest',
      status: 'done',
      response: 'Hello!',
      iterations: 1,
      usage: { input_tokens: 812, output_tokens: 9 },
      cost_usd: 0.0021,
      received_at: '2026-01-31T11:59:58.000Z',
      details: 'turn 1f0c3a52-9c1e-4d0a-b0de-3c6c1f2b9a77 by rest done',
    },
  },
}

export function webhookRoutes(webhooks: Open, test: (target: Target) => Promise<SendResult>): readonly AnyRoute[] {
  return [
    listWebhooks(webhooks),
    addWebhook(webhooks),
    readWebhook(webhooks),
    changeWebhook(webhooks),
    remove(webhooks, 'outbound', '/api/webhooks/:id'),
    testWebhook(webhooks, test),
    listSubscriptions(webhooks),
    addSubscription(webhooks),
    changeSubscription(webhooks),
    remove(webhooks, 'event', '/api/webhooks/events/:id'),
    ...deliveryRoutes(webhooks, 'outbound', '/api/webhooks'),
    ...deliveryRoutes(webhooks, 'event', '/api/webhooks/events'),
  ]
}

function listWebhooks(webhooks: Open): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/webhooks',
    summary: 'The outbound webhooks',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: WebhookList,
    example: { returns: { webhooks: [shownWebhook], total: 1 } },
    async handle({ query }) {
      const found = await withCounts(await webhooks(), 'outbound', query)
      return { webhooks: found.map(([target, counts]) => ({ ...toWebhook(target), ...counts })), total: found.length }
    },
  })
}

function addWebhook(webhooks: Open): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/webhooks',
    summary: 'Send events to an address',
    description: DELIVERY_DESCRIPTION,
    callback,
    auth,
    effect: 'lasting',
    cost: 5,
    body: NewWebhook,
    returns: Webhook,
    status: 201,
    errors: ['conflict'],
    idempotent: true,
    keepsAnswer: false,
    example: {
      body: {
        name: 'ci',
        url: 'https://example.com/hook',
        events: ['agent_spawned', 'message_completed'],
        secret: 'a long random text',
      },
      returns: shownWebhook,
    },
    async handle({ body, effectId }) {
      return toWebhook(
        await (
          await webhooks()
        ).add('outbound', { ...body, id: effectId ?? randomUUID(), secret: body.secret ?? undefined }),
      )
    },
    async recall(effectId) {
      const target = await (await webhooks()).find('outbound', effectId)
      return target && toWebhook(target)
    },
  })
}

function readWebhook(webhooks: Open): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/webhooks/:id',
    summary: 'Read an outbound webhook',
    auth,
    effect: 'read',
    cost: 2,
    params: WebhookParams,
    returns: Webhook,
    errors: ['webhook_not_found'],
    example: { returns: shownWebhook },
    async handle({ params }) {
      return toWebhook(await (await webhooks()).require('outbound', params.id))
    },
  })
}

function changeWebhook(webhooks: Open): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/webhooks/:id',
    summary: 'Change an outbound webhook',
    description: CHANGE_DESCRIPTION,
    auth,
    effect: 'lasting',
    cost: 5,
    params: WebhookParams,
    body: WebhookChange,
    shown: async ({ params }) => ({
      fields: toWebhook(await (await webhooks()).require('outbound', params.id)),
      measured: ['updated_at'],
    }),
    returns: Webhook,
    errors: ['webhook_not_found'],
    example: { body: { enabled: false }, returns: { ...shownWebhook, enabled: false } },
    async handle({ params, body, unchanged }) {
      if (unchanged) return toWebhook(await (await webhooks()).require('outbound', params.id))
      return toWebhook(await (await webhooks()).change('outbound', params.id, body))
    },
  })
}

function testWebhook(webhooks: Open, test: (target: Target) => Promise<SendResult>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/webhooks/:id/test',
    summary: 'Send a test to an outbound webhook',
    description:
      'Sent once, whether or not the webhook is enabled. ' +
      'Answers 200 with the status of the receiver, and 502 when there was no answer.',
    auth,
    effect: 'lasting',
    idempotent: false,
    cost: 20,
    params: WebhookParams,
    returns: TestResult,
    answers: { 502: { description: 'There was no answer', json: TestResult } },
    errors: ['webhook_not_found'],
    example: { returns: { status: 'sent', response_status: 204, webhook_id: example.id } },
    async handle({ params }) {
      const { status, error } = await test(await (await webhooks()).require('outbound', params.id))
      if (status !== null) return { status: 'sent' as const, response_status: status, webhook_id: params.id }
      return reply(
        JSON.stringify({ status: 'error', error: error ?? 'no answer', webhook_id: params.id }),
        { 'content-type': 'application/json' },
        502,
      )
    },
  })
}

function listSubscriptions(webhooks: Open): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/webhooks/events',
    summary: 'The event subscriptions',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: EventWebhookList,
    example: { returns: [shownSubscription] },
    async handle({ query }) {
      const found = await withCounts(await webhooks(), 'event', query)
      return found.map(([target, counts]) => ({ ...toEventWebhook(target), ...counts }))
    },
  })
}

function addSubscription(webhooks: Open): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/webhooks/events',
    summary: 'Subscribe an address to events',
    description: DELIVERY_DESCRIPTION,
    callback,
    auth,
    effect: 'lasting',
    cost: 5,
    body: NewEventWebhook,
    returns: EventWebhook,
    status: 201,
    errors: ['conflict'],
    idempotent: true,
    keepsAnswer: false,
    example: {
      body: { event_type: 'agent_spawned', url: 'https://example.com/hook', secret: 'a long random text' },
      returns: shownSubscription,
    },
    async handle({ body, effectId }) {
      return toEventWebhook(
        await (
          await webhooks()
        ).add('event', {
          id: effectId ?? randomUUID(),
          name: '',
          url: body.url,
          events: eventNamesOf(body) ?? [],
          secret: body.secret ?? undefined,
          enabled: body.enabled,
        }),
      )
    },
    async recall(effectId) {
      const target = await (await webhooks()).find('event', effectId)
      return target && toEventWebhook(target)
    },
  })
}

function changeSubscription(webhooks: Open): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/webhooks/events/:id',
    summary: 'Change an event subscription',
    description: CHANGE_DESCRIPTION,
    auth,
    effect: 'lasting',
    cost: 5,
    params: WebhookParams,
    body: EventWebhookChange,
    shown: async ({ params }) => ({
      fields: toEventWebhook(await (await webhooks()).require('event', params.id)),
      measured: ['updated_at'],
    }),
    returns: EventWebhook,
    errors: ['webhook_not_found'],
    example: { body: { enabled: false }, returns: { ...shownSubscription, enabled: false } },
    async handle({ params, unchanged, body: { event_type, events, ...body } }) {
      if (unchanged) return toEventWebhook(await (await webhooks()).require('event', params.id))
      const change = { ...body, ...omitUndefined({ events: eventNamesOf({ event_type, events }) }) }
      return toEventWebhook(await (await webhooks()).change('event', params.id, change))
    },
  })
}

/** Both `event_type` and `events`, without repeating the former. */
function eventNamesOf({
  event_type: one,
  events,
}: {
  readonly event_type?: string | undefined
  readonly events?: readonly string[] | undefined
}): readonly string[] | undefined {
  if (one === undefined) return events
  return [one, ...(events ?? []).filter((name) => name !== one)]
}

function remove(webhooks: Open, kind: Target['kind'], path: `/${string}`): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path,
    summary: kind === 'event' ? 'Remove an event subscription' : 'Remove an outbound webhook',
    description: 'Waiting deliveries are dropped.',
    auth,
    effect: 'lasting',
    cost: 5,
    params: WebhookParams,
    returns: v.object({ status: v.literal('deleted'), webhook_id: v.string() }),
    errors: ['webhook_not_found'],
    async handle({ params }) {
      await (await webhooks()).remove(kind, params.id)
      return { status: 'deleted' as const, webhook_id: params.id }
    },
  })
}

function deliveryRoutes(webhooks: Open, kind: Target['kind'], base: `/${string}`): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: `${base}/:id/deliveries`,
      summary: `The deliveries to ${kind === 'event' ? 'an event subscription' : 'an outbound webhook'}, newest first`,
      description: '`dead` counts the deliveries that failed in all attempts, `total` those in the given state.',
      auth,
      effect: 'read',
      cost: 5,
      params: WebhookParams,
      query: DeliveryQuery,
      returns: DeliveryList,
      errors: ['webhook_not_found'],
      async handle({ params, query }) {
        const { deliveries, ...counts } = await (await webhooks()).deliveries(kind, params.id, query.state, query.limit)
        return { deliveries: deliveries.map(toDelivery), ...counts }
      },
    }),
    defineRoute({
      method: 'POST',
      path: `${base}/:id/deliveries/:delivery_id/retry`,
      summary: 'Try a dead letter again',
      auth,
      effect: 'lasting',
      cost: 5,
      params: DeliveryParams,
      returns: Delivery,
      errors: ['webhook_not_found', 'delivery_not_found', 'conflict'],
      async handle({ params }) {
        return toDelivery(await (await webhooks()).retry(kind, params.id, params.delivery_id))
      },
    }),
  ]
}

/** Each target with what a list says of its deliveries. */
async function withCounts(service: Webhooks, kind: Target['kind'], query: v.InferOutput<typeof ListQuery>) {
  const targets = await service.list(kind)
  if (query.counts === 'false') return targets.map((target) => [target, {}] as const)
  const counts = await service.counts()
  return targets.map((target) => [target, counts.get(target.id) ?? { dead: 0, pending: 0 }] as const)
}
const hidden = (target: Target): typeof MASK | null => (target.has_secret ? MASK : null)
function toWebhook(target: Target): v.InferOutput<typeof Webhook> {
  const { id, name, url, events, enabled, created_at, updated_at } = target
  return { id, name, url, secret: hidden(target), events, enabled, created_at, updated_at }
}
function toEventWebhook(target: Target): v.InferOutput<typeof EventWebhook> {
  const { id, url, events, enabled, created_at, updated_at } = target
  return { id, event_type: events[0] ?? '', events, url, secret: hidden(target), enabled, created_at, updated_at }
}
function toDelivery(row: DeliveryRow): v.InferOutput<typeof Delivery> {
  return {
    id: row.event_id,
    webhook_id: row.target_id,
    event: row.event,
    timestamp: row.occurred_at,
    state: row.state,
    attempts: row.attempts,
    next_attempt_at: row.state === 'pending' ? row.due_at : null,
    response_status: row.status,
    error: row.error,
    settled_at: row.settled_at,
  }
}
