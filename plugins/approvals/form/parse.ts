import * as v from 'valibot'
import { omitUndefined, Refusal } from 'svc/sdk'
import { visible } from '../action.ts'
import type { ApprovalForm, ApprovalFormInput, FormField } from '../contract.ts'

const MAX_FIELDS = 50
const MAX_OPTIONS = 200
const MAX_TEXT_CHARS = 1024

const Text = v.optional(v.pipe(v.string(), v.maxLength(MAX_TEXT_CHARS)))
const Titled = v.pipe(
  v.array(v.object({ const: v.pipe(v.string(), v.maxLength(MAX_TEXT_CHARS)), title: Text })),
  v.minLength(1),
  v.maxLength(MAX_OPTIONS),
)
const Values = v.pipe(
  v.array(v.pipe(v.string(), v.maxLength(MAX_TEXT_CHARS))),
  v.minLength(1),
  v.maxLength(MAX_OPTIONS),
)
const about = { title: Text, description: Text }
const count = v.optional(v.pipe(v.number(), v.integer(), v.minValue(0)))

const TextField = v.object({
  ...about,
  type: v.literal('string'),
  enum: v.optional(Values),
  enumNames: v.optional(v.array(v.string())),
  oneOf: v.optional(Titled),
  format: v.optional(v.picklist(['email', 'uri', 'date', 'date-time'])),
  minLength: count,
  maxLength: count,
  default: v.optional(v.string()),
})
const NumberField = v.object({
  ...about,
  type: v.picklist(['number', 'integer']),
  minimum: v.optional(v.number()),
  maximum: v.optional(v.number()),
  default: v.optional(v.number()),
})
const BooleanField = v.object({ ...about, type: v.literal('boolean'), default: v.optional(v.boolean()) })
const ChoicesField = v.object({
  ...about,
  type: v.literal('array'),
  items: v.union([v.object({ enum: Values }), v.object({ anyOf: Titled }), v.object({ oneOf: Titled })]),
  minItems: count,
  maxItems: count,
  default: v.optional(v.array(v.string())),
})
const FieldSchema = v.variant('type', [TextField, NumberField, BooleanField, ChoicesField])
const FormSchema = v.object({
  type: v.optional(v.literal('object'), 'object'),
  properties: v.optional(v.record(v.pipe(v.string(), v.minLength(1), v.maxLength(64)), FieldSchema), {}),
  required: v.optional(v.array(v.string()), []),
})

/**
 * The form that a flat JSON Schema of primitives describes, as the elicitation of MCP has it. Throws `invalid_request`
 * with the place that is not understood.
 */
export function parseForm({ schema, title }: ApprovalFormInput): ApprovalForm {
  const parsed = v.safeParse(FormSchema, schema)
  if (!parsed.success) {
    const [issue] = parsed.issues
    const at = v.getDotPath(issue) ?? 'it'
    throw new Refusal('invalid_request', `This form cannot be shown to a person: ${at}: ${issue.message}`)
  }
  const { properties, required } = parsed.output
  const names = Object.keys(properties)
  if (names.length > MAX_FIELDS)
    throw new Refusal('invalid_request', `A form with ${names.length} fields is too long: at most ${MAX_FIELDS}`)
  const fields = Object.entries(properties).map(([name, field]) => toField(name, field, required.includes(name)))
  return omitUndefined({ title: title === undefined ? undefined : visible(title), schema, fields })
}

function toField(name: string, field: v.InferOutput<typeof FieldSchema>, required: boolean): FormField {
  const base = {
    name,
    required,
    title: visible(field.title ?? name),
    description: visible(field.description ?? ''),
  }
  switch (field.type) {
    case 'boolean':
      return omitUndefined({ ...base, kind: 'boolean' as const, default: field.default })
    case 'array':
      return omitUndefined({
        ...base,
        kind: 'choices' as const,
        options: optionsOf(field.items),
        minimum: field.minItems,
        maximum: field.maxItems,
        default: field.default,
      })
    case 'string':
      return toTextField(base, field)
    default:
      return omitUndefined({
        ...base,
        kind: field.type,
        minimum: field.minimum,
        maximum: field.maximum,
        default: field.default,
      })
  }
}

function toTextField(
  base: Pick<FormField, 'name' | 'required' | 'title' | 'description'>,
  field: v.InferOutput<typeof TextField>,
): FormField {
  const { enum: values, enumNames: titles, oneOf } = field
  if (values || oneOf)
    return omitUndefined({
      ...base,
      kind: 'choice' as const,
      options: oneOf ? optionsOf({ oneOf }) : optionsOf({ enum: values ?? [] }, titles),
      default: field.default,
    })
  return omitUndefined({
    ...base,
    kind: 'text' as const,
    format: field.format,
    minimum: field.minLength,
    maximum: field.maxLength,
    default: field.default,
  })
}

type Options = { readonly enum: readonly string[] } | { readonly anyOf: TitledList } | { readonly oneOf: TitledList }
type TitledList = v.InferOutput<typeof Titled>
function optionsOf(options: Options, titles: readonly string[] = []): NonNullable<FormField['options']> {
  if ('enum' in options) return options.enum.map((value, at) => ({ value, title: visible(titles[at] ?? value) }))
  const listed = 'anyOf' in options ? options.anyOf : options.oneOf
  return listed.map(({ const: value, title }) => ({ value, title: visible(title ?? value) }))
}
