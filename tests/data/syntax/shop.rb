# A shop.
require "set"

module Shop
  class Basket
    attr_reader :items

    def initialize(items = [])
      @items = items
    end

    def add(name, price: 0, count: 1)
      raise ArgumentError, "no name" if name.nil?
      count.times do |i|
        @items << { name: "#{name}-#{i}", price: price }
      end
      self
    end

    def total
      @items.sum { |item| item[:price] }
    end

    def cheap?
      if total > 10
        false
      else
        true
      end
    end
  end
end

puts Shop::Basket.new.add("tea", price: 3).total unless ARGV.empty?
