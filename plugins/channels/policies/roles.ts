export const roles = ['user', 'operator'] as const
export type Role = (typeof roles)[number]
