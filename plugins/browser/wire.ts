import * as v from 'valibot'

/** What the process in the sandbox is started with: its only argument, as JSON. */
export interface DriverStart {
  /** Absolute path of the module of playwright-core. */
  readonly module: string
  /** Absolute path of Chromium. */
  readonly executable: string
  /** The only way to the network. */
  readonly proxy: string
  readonly width: number
  readonly height: number
  readonly downloadBytes: number
  /** How long the scripts of a page may keep everything else from running. */
  readonly hangMs: number
}
/** One line to it. */
export interface DriverRequest {
  readonly id: number
  readonly op: Op
  readonly args: DriverArgs
  readonly timeoutMs: number
}
export type Op =
  | 'navigate'
  | 'click'
  | 'type'
  | 'screenshot'
  | 'read'
  | 'scroll'
  | 'wait'
  | 'run'
  | 'back'
  | 'file'
  | 'state'
export interface DriverArgs {
  readonly url?: string
  readonly selector?: string
  readonly text?: string
  readonly expression?: string
  readonly direction?: 'up' | 'down' | 'left' | 'right'
  readonly amount?: number
  readonly maxChars?: number
  /** Of a file: which, and from which byte. */
  readonly file?: number
  readonly offset?: number
}

const text = v.pipe(v.string(), v.maxLength(16_777_216))
const count = v.pipe(v.number(), v.integer(), v.minValue(0))
const Link = v.object({ text, href: text })
const Field = v.object({ selector: text, label: text, type: text, value: text })
const Button = v.object({ selector: text, text })
/** The content of a page. */
export const PageContent = v.object({
  text,
  links: v.array(Link),
  fields: v.array(Field),
  buttons: v.array(Button),
})
export type PageContent = v.InferOutput<typeof PageContent>
const Download = v.object({
  file: count,
  name: text,
  state: v.picklist(['running', 'done', 'failed']),
  bytes: count,
  why: text,
})
export type Download = v.InferOutput<typeof Download>
/** Where the browser is after a request. */
const Place = v.object({ url: text, title: text, notes: v.array(text), downloads: v.array(Download) })
export type Place = v.InferOutput<typeof Place>

/** One line from it. Everything in it may be made up by a page that broke out of Chromium. */
export const DriverAnswer = v.union([
  v.object({ ready: text }),
  v.object({
    id: count,
    /** Absent when it failed. */
    result: v.optional(v.object({ value: v.optional(text), content: v.optional(PageContent) })),
    error: v.optional(text),
    /** A script of the page lets nothing else run. */
    fatal: v.optional(v.boolean()),
    place: v.optional(Place),
  }),
])
export type DriverAnswer = v.InferOutput<typeof DriverAnswer>
