import { settingFromText } from '../config/broker-configs.ts';
import { type DeliverySettings, resolveDelivery } from '../config/delivery-settings.ts';
import { type Settings, withDefaults } from '../config/settings.ts';
import { type TopicSettings, topicSettings } from '../config/topic-settings.ts';
import type { Replica } from '../replica/replica.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Topic } from '../state/topics.ts';

const nothingSet: ReadonlyMap<string, string> = new Map();

/** How one topic is delivered, as far as that was asked for since the last change. */
interface KnownDelivery {
  /** To groups without configurations of their own: the same object for all. */
  plain: DeliverySettings | undefined;
  readonly byGroup: Map<string, DeliverySettings>;
}

/**
 * The configurations in force on this node: what was set for the node, over what was set for all
 * nodes, over what was given at the start. What is derived from them is kept until any of them
 * changes.
 */
export class EffectiveConfigs {
  readonly #atStart: Settings;
  readonly #replica: Replica;
  readonly #nodeId: string;
  #settings: Settings;
  #topicSettings = new WeakMap<Topic, TopicSettings>();
  #deliveries = new WeakMap<Topic, KnownDelivery>();
  #version = 0;
  readonly #listeners: (() => void)[] = [];

  constructor(atStart: Settings, replica: Replica) {
    this.#atStart = atStart;
    this.#replica = replica;
    this.#nodeId = String(atStart['node.id']);
    this.#settings = this.#withOverrides();
    replica.listen({
      onApplied: (entry) => {
        if (entry.type === EntryType.configsSet) this.#renew();
      },
    });
  }

  get settings(): Settings {
    return this.#settings;
  }

  /** Rises whenever a configuration of a topic, a group or the broker changes. */
  get version(): number {
    return this.#version;
  }

  /** The listener is called after each rise of the version. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** The same object for as long as no configuration changes. */
  deliveryOf(groupId: string, topicName: string): DeliverySettings {
    const { state } = this.#replica;
    const topic = state.topics.byName(topicName);
    const group = state.groupConfigs.get(groupId);
    if (topic === undefined) return this.#resolve(group, topicName, nothingSet);
    let known = this.#deliveries.get(topic);
    if (known === undefined) {
      known = { plain: undefined, byGroup: new Map() };
      this.#deliveries.set(topic, known);
    }
    if (group === undefined) {
      known.plain ??= this.#resolve(undefined, topicName, topic.configs);
      return known.plain;
    }
    let own = known.byGroup.get(groupId);
    if (own === undefined) {
      own = this.#resolve(group, topicName, topic.configs);
      known.byGroup.set(groupId, own);
    }
    return own;
  }

  topicSettings(topic: Topic): TopicSettings {
    const known = this.#topicSettings.get(topic);
    if (known !== undefined) return known;
    const made = topicSettings(topic.configs, this.#settings);
    this.#topicSettings.set(topic, made);
    return made;
  }

  #resolve(
    group: ReadonlyMap<string, string> | undefined,
    topicName: string,
    topic: ReadonlyMap<string, string>,
  ): DeliverySettings {
    return resolveDelivery({
      group: group ?? nothingSet,
      topicName,
      topic,
      broker: this.#settings,
    });
  }

  #renew(): void {
    this.#settings = this.#withOverrides();
    this.#topicSettings = new WeakMap();
    this.#deliveries = new WeakMap();
    this.#version++;
    for (const listener of this.#listeners) listener();
  }

  #withOverrides(): Settings {
    const { brokerConfigs, nodeConfigs } = this.#replica.state;
    const texts = [...brokerConfigs, ...(nodeConfigs.get(this.#nodeId) ?? [])];
    const overrides = texts.map(([name, text]) => [name, settingFromText(name, text)]);
    return withDefaults({ ...this.#atStart, ...Object.fromEntries(overrides) });
  }
}
