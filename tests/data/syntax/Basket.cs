using System;
using System.Collections.Generic;

namespace Shop
{
    public class Basket
    {
        private readonly List<decimal> prices = new List<decimal>();

        public int Count => prices.Count;

        public void Add(decimal price, int count = 1)
        {
            for (var i = 0; i < count; i++)
            {
                if (price < 0)
                {
                    throw new ArgumentException($"price: {price}");
                }
                prices.Add(price);
            }
        }

        public decimal Total()
        {
            var total = 0m;
            foreach (var price in prices)
            {
                total += price;
            }
            return total;
        }
    }
}
